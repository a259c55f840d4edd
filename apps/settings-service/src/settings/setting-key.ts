import type { SettingName } from '@platform/setting-names';

/**
 * One setting's address. Source: settings spec, "A setting is identified by a subsystem name and a setting
 * name".
 */
export interface SettingKey {
  readonly subsystem: SettingName;
  readonly setting: SettingName;
}

/**
 * One text for a whole key, for maps and locks; no two keys share one, because names hold no control
 * character.
 */
export function settingKeyText(key: SettingKey): string {
  return `${key.subsystem.key}\u0000${key.setting.key}`;
}

/** Each key once, where it comes first. */
export function distinctKeys(keys: readonly SettingKey[]): SettingKey[] {
  const distinct = new Map<string, SettingKey>();
  for (const key of keys) {
    const text = settingKeyText(key);
    if (!distinct.has(text)) distinct.set(text, key);
  }
  return [...distinct.values()];
}
