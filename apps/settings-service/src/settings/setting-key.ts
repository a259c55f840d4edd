/** What names a setting: the key finds it, the name is shown. Both are in Unicode normal form C. */
export interface SettingName {
  /** As the caller wrote it. */
  readonly name: string;
  /** Folded for matching: names that differ in case only have the same key. */
  readonly key: string;
}

/** One setting's address. Source: settings spec, "A setting is identified by a subsystem name and a setting name". */
export interface SettingKey {
  readonly subsystem: SettingName;
  readonly setting: SettingName;
}

/** The longest name, in code points after normalisation. */
export const MAX_NAME_CODE_POINTS = 200;

// Cc: controls of ASCII and Latin-1; Cs: surrogates, which the `u` flag matches only where they stand alone.
const FORBIDDEN_IN_NAMES = /[\p{Cc}\p{Cs}]/u;

/**
 * Normalises and folds a subsystem or setting name.
 *
 * Folding is `normalize('NFC').toLowerCase()` in the application and not in SQL, where `lower()` depends on the database's collation.
 * @returns null unless it has 1 to {@link MAX_NAME_CODE_POINTS} code points and no control character or lone surrogate.
 */
export function parseSettingName(text: string): SettingName | null {
  const name = text.normalize('NFC');
  if (name.length === 0 || FORBIDDEN_IN_NAMES.test(name)) return null;
  // Cheap answer first: a code point is one or two UTF-16 units.
  if (name.length > MAX_NAME_CODE_POINTS && Array.from(name).length > MAX_NAME_CODE_POINTS) return null;
  return { name, key: name.toLowerCase() };
}

/** One text for a whole key, for maps and locks; no two keys share one, because names hold no control character. */
export function settingKeyText(key: SettingKey): string {
  return `${key.subsystem.key}\u0000${key.setting.key}`;
}
