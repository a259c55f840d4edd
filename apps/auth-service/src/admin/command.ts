import { ALL_PERSONAS, Persona, combinePersonas } from '@platform/personas';
import type { PersonaName, Personas } from '@platform/personas';
import { InvalidArgumentError } from 'commander';
import type { DataSource } from 'typeorm';
import { userNameKey } from '../identity/identity';
import type { Store } from '../identity/identity';
import type { SecretBox } from '../keys/secret-box';
import { TOKEN_FLOWS } from '../rejections/token-rejection';
import { parseMinDate } from '../revocations/revocation';

export interface CommandContext {
  dataSource: DataSource;
  /**
   * Returns the box that seals and opens secrets.
   * @throws {RefusedError} when the environment has no sealing key
   */
  secretBox: () => SecretBox;
  /** Reports the progress of a long command while it runs. */
  progress: (text: string) => void;
  /**
   * Prints the result before the command ends, so that a secret is committed only if it could be printed. The
   * result is not printed again.
   * @throws {CommandError} when it cannot be written
   */
  show: (result: CommandResult) => Promise<void>;
  /** Connects to an identity store as the role that owns its tables. */
  inStore: <T>(store: Store, work: (dataSource: DataSource) => Promise<T>) => Promise<T>;
}

/**
 * The result of a command: as data (`--json`) and as text. It may contain a secret that is shown only this
 * once.
 */
export interface CommandResult {
  json: unknown;
  text: string;
}

/**
 * Connects, runs a command's work and prints its result. Called only after the whole command line is parsed.
 */
export type RunCommand = (work: (context: CommandContext) => Promise<CommandResult>) => Promise<void>;

/** Formats rows as aligned columns, two spaces apart, without trailing spaces. */
export function columns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows)
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd();
  return rows.map(line).join('\n');
}

/** A command is refused. The message says why, and how to proceed. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
}

const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;
const MAX_SECONDS = 366 * UNIT_SECONDS.d;

/** Parses `90s`, `30m`, `24h` or `7d` into seconds, at most 366 days. @throws {InvalidArgumentError} */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(amount) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS];
  if (amount !== undefined && seconds <= MAX_SECONDS) return seconds;
  throw new InvalidArgumentError(
    `"${text}" is no duration of at most 366 days: write it like 90s, 30m, 24h or 7d`,
  );
}

/** Parses `Customer,Owner` or `all` into persona bits, in any letter case. @throws {InvalidArgumentError} */
export function parsePersonas(text: string): Personas {
  if (text.toLowerCase() === 'all') return ALL_PERSONAS;
  const names = (Object.keys(Persona) as PersonaName[]).filter((name) => name !== 'None');
  const bits = text.split(',').map((word) => {
    const name = names.find((each) => each.toLowerCase() === word.trim().toLowerCase());
    if (name !== undefined) return Persona[name];
    throw new InvalidArgumentError(
      `there is no persona "${word.trim()}": choose from ${names.join(', ')}, or all`,
    );
  });
  return combinePersonas(...bits);
}

/** Parses `trust,bearer` or `all` into flows. @throws {InvalidArgumentError} */
export function parseFlows(text: string): string[] {
  if (text.toLowerCase() === 'all') return [...TOKEN_FLOWS];
  const flows = text.split(',').map((word) => word.trim().toLowerCase());
  const unknown = flows.find((flow) => !TOKEN_FLOWS.some((known) => known === flow));
  if (unknown === undefined) return [...new Set(flows)];
  throw new InvalidArgumentError(
    `there is no flow "${unknown}": choose from ${TOKEN_FLOWS.join(', ')}, or all`,
  );
}

/**
 * The users for whom an application may get tokens: folded names, or null for any user. Wrapped in an object,
 * because commander treats null as no value.
 */
export interface Subjects {
  names: string[] | null;
}

const MAX_SUBJECTS = 200;
const MAX_NAME = 256;
/** Excludes control characters, and characters such as U+202E that change how a line is displayed. */
const PRINTABLE = /^[^\p{C}\p{Zl}\p{Zp}]+$/u;

/**
 * Returns a parser of names for later display: printable, without surrounding spaces, at most `max`
 * characters.
 */
export function printableUpTo(max: number): (text: string) => string {
  return (text) => {
    if (PRINTABLE.test(text) && text.trim() === text && text.length <= max) return text;
    throw new InvalidArgumentError(
      `it must have 1 to ${String(max)} printable characters, and no space at its beginning or end`,
    );
  };
}

/** Parses user names such as `svc.platform,carl`, or `anybody`. @throws {InvalidArgumentError} */
export function parseSubjects(text: string): Subjects {
  if (text.toLowerCase() === 'anybody') return { names: null };
  const words = text.split(',');
  const names = words.map((name) => userNameKey(name.trim()));
  if (names.includes('')) throw new InvalidArgumentError('write user names separated by commas, or anybody');
  if (words.length > MAX_SUBJECTS)
    throw new InvalidArgumentError(`at most ${String(MAX_SUBJECTS)} user names are allowed`);
  if (names.some((name) => name.length > MAX_NAME || !PRINTABLE.test(name)))
    throw new InvalidArgumentError(
      `a user name has at most ${String(MAX_NAME)} characters, all of them printable`,
    );
  return { names: [...new Set(names)] };
}

/** Returns a parser of whole numbers from 1 to `max`. */
export function countUpTo(max: number): (text: string) => number {
  return (text) => {
    const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    if (count >= 1 && count <= max) return count;
    throw new InvalidArgumentError(`it must be a whole number from 1 to ${max}`);
  };
}

/** Parses a date or a date-time, in UTC unless it has an offset. @throws {InvalidArgumentError} */
export function parseInstant(text: string): Date {
  const instant = parseMinDate(text);
  if (instant !== null) return instant;
  throw new InvalidArgumentError(`"${text}" is no date: write it like 2026-01-31 or 2026-01-31T12:00:00Z`);
}

/** The `--limit` option of list commands. */
export const LIMIT = ['--limit <number>', 'list at most this many', countUpTo(100_000), 100] as const;
