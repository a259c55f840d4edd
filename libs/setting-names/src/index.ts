import { foldCase } from './case-folding';

/** What names a setting: the key finds it, the name is shown. */
export interface SettingName {
  /** As the caller wrote it, in Unicode normal form C. */
  readonly name: string;
  /** Folded for matching: names that differ in case only have the same key. */
  readonly key: string;
}

/** The longest name, in code points after normalisation. */
export const MAX_NAME_CODE_POINTS = 200;

/** What a name must be, for whoever sent one that is not. */
export const SETTING_NAME_RULE = `must have 1 to ${String(MAX_NAME_CODE_POINTS)} characters, something visible and no control character, and not be "." or ".."`;

// Cc: controls of ASCII and Latin-1; Cs: surrogates, which the `u` flag matches only where they stand alone.
const FORBIDDEN_IN_NAMES = /[\p{Cc}\p{Cs}]/u;
// Nothing to see: spaces, the blank of Braille, what no font draws, and the marks of interlinear annotations.
const INVISIBLE = /^[\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]*$/u;
const ASCII = /^[\0-\x7f]*$/;

/**
 * The key of a subsystem or setting name: full Unicode case folding over normal form C, composed again,
 * because folding takes letters apart (`ǰ`) that a mark may stand between. In the application and not in SQL,
 * where `lower()` depends on the database's collation.
 */
export function settingNameKey(name: string): string {
  return ASCII.test(name) ? name.toLowerCase() : foldCase(name.normalize('NFC')).normalize('NFC');
}

/**
 * Normalises and folds a subsystem or setting name.
 * @returns null unless it has 1 to {@link MAX_NAME_CODE_POINTS} code points, something visible among them and no control character or
 *   lone surrogate; null also for `.` and `..`, which every client takes out of an address before it is sent
 */
export function parseSettingName(text: string): SettingName | null {
  const name = text.normalize('NFC');
  if (FORBIDDEN_IN_NAMES.test(name) || INVISIBLE.test(name) || name === '.' || name === '..') return null;
  // Cheap answer first: a code point is one or two UTF-16 units.
  if (name.length > MAX_NAME_CODE_POINTS && Array.from(name).length > MAX_NAME_CODE_POINTS) return null;
  return { name, key: settingNameKey(name) };
}
