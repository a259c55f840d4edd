import type { SettingName } from '@platform/setting-names';

/**
 * Identifies one setting. Source: settings spec, "A setting is identified by a subsystem name and a setting
 * name".
 */
export interface SettingKey {
  readonly subsystem: SettingName;
  readonly setting: SettingName;
}

/**
 * Returns one string for the whole key, for maps and locks. It is unique, because names contain no control
 * characters.
 */
export function settingKeyText(key: SettingKey): string {
  return `${key.subsystem.key}\u0000${key.setting.key}`;
}

/** Returns the keys without repetitions, in the order of their first occurrence. */
export function distinctKeys(keys: readonly SettingKey[]): SettingKey[] {
  const distinct = new Map<string, SettingKey>();
  for (const key of keys) {
    const text = settingKeyText(key);
    if (!distinct.has(text)) distinct.set(text, key);
  }
  return [...distinct.values()];
}
