import { foldCase } from './case-folding';

/** The name of a subsystem or setting: `name` is for display, `key` for matching. */
export interface SettingName {
  /** As the caller wrote it, in Unicode normal form C. */
  readonly name: string;
  /** Case-folded name. Names that differ only in case have the same key. */
  readonly key: string;
}

/** Maximum length of a name, in code points after normalisation. */
export const MAX_NAME_CODE_POINTS = 200;

/** The rule for names, as told to a client that sent an invalid name. */
export const SETTING_NAME_RULE = `must have 1 to ${String(MAX_NAME_CODE_POINTS)} characters, something visible and no control character, and not be "." or ".."`;

// Cc: control characters of ASCII and Latin-1. Cs: surrogates, of which the `u` flag matches only lone ones.
const FORBIDDEN_IN_NAMES = /[\p{Cc}\p{Cs}]/u;
// Texts with nothing visible: spaces, the Braille blank, characters without a glyph, and interlinear
// annotation marks.
const INVISIBLE = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]*$/u;
const ASCII = /^[\0-\x7f]*$/;

/**
 * Returns the key of a subsystem or setting name: full Unicode case folding of normal form C, normalised to
 * form C again, because folding decomposes some letters (`ǰ`) and can leave their marks out of canonical
 * order. Computed here and not in SQL, where `lower()` depends on the database's collation.
 */
export function settingNameKey(name: string): string {
  return ASCII.test(name) ? name.toLowerCase() : foldCase(name.normalize('NFC')).normalize('NFC');
}

/**
 * Normalises and folds a subsystem or setting name.
 * @returns null unless it has 1 to {@link MAX_NAME_CODE_POINTS} code points, at least one of them visible,
 * and no control character or lone surrogate. Null also for `.` and `..`, which HTTP clients remove from an
 * address.
 */
export function parseSettingName(text: string): SettingName | null {
  const name = text.normalize('NFC');
  if (FORBIDDEN_IN_NAMES.test(name) || INVISIBLE.test(name) || name === '.' || name === '..') return null;
  // Count code points only if necessary: a code point is one or two UTF-16 units.
  if (name.length > MAX_NAME_CODE_POINTS && Array.from(name).length > MAX_NAME_CODE_POINTS) return null;
  return { name, key: settingNameKey(name) };
}
