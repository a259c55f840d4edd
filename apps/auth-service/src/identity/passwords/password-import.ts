import { z } from 'zod';
import { userNameKey } from '../identity';
import { readPasswordHash } from './password-hash';
import type { UnsaltedDigest } from './password-hash';

/**
 * The format of a password file: NDJSON with one object per line, or CSV (RFC 4180) with one record per line
 * and a header line.
 */
export type ImportFormat = 'csv' | 'ndjson';

const LONGEST_LINE = 10_000;

/**
 * A password to import. `salt` and `digest` are columns of `aspnet_Membership`. Every other hash names its
 * scheme itself.
 */
const row = z.object({
  userName: z.string().min(1).max(256),
  passwordHash: z.string().min(1),
  salt: z.string().nullish(),
  digest: z.enum(['sha1', 'sha256']).nullish(),
});

/** A hash ready to store, or a bare digest that must be wrapped first. */
export interface ImportedPassword {
  userNameKey: string;
  hash: string | { unsalted: UnsaltedDigest; digest: string };
}

/** A line that cannot be imported. The message never quotes the line, which may contain a hash. */
export class BadLineError extends Error {
  override readonly name = 'BadLineError';
}

/** Returns the columns of a CSV header line. @throws {BadLineError} if a required column is missing */
export function readCsvHeader(line: string): string[] {
  const names = splitCsv(line.replace(/^\uFEFF/, ''));
  for (const name of ['userName', 'passwordHash'])
    if (!names.includes(name)) throw new BadLineError(`the first line names no column ${name}`);
  return names;
}

/** Parses a line. @param csvColumns null for NDJSON @throws {BadLineError} */
export function readImportLine(line: string, csvColumns: readonly string[] | null): ImportedPassword {
  if (line.length > LONGEST_LINE) throw new BadLineError('longer than 10,000 characters');
  const read = row.safeParse(csvColumns === null ? parseObject(line) : csvObject(line, csvColumns));
  if (!read.success)
    throw new BadLineError(`not right: ${String(read.error.issues[0]?.path[0] ?? 'no object')}`);
  const { userName, passwordHash, salt, digest } = read.data;
  const isMembership = typeof salt === 'string' && salt !== '';
  const stored = isMembership
    ? `aspnet-membership$${digest ?? 'sha1'}$${salt}$${passwordHash}`
    : passwordHash;
  return { userNameKey: userNameKey(userName), hash: storable(stored) };
}

function parseObject(line: string): unknown {
  try {
    return JSON.parse(line.replace(/^\uFEFF/, ''));
  } catch (error) {
    if (error instanceof SyntaxError) throw new BadLineError('not JSON');
    throw error;
  }
}

function csvObject(line: string, columns: readonly string[]): Record<string, string | null> {
  const cells = splitCsv(line);
  if (cells.length !== columns.length) throw new BadLineError('not as many cells as the first line has');
  return Object.fromEntries(columns.map((name, n) => [name, cells[n] === '' ? null : cells[n]!]));
}

const CELL = /(?:"((?:[^"]|"")*)"|([^",]*))(?:,|$)/y;

function splitCsv(line: string): string[] {
  const cells: string[] = [];
  CELL.lastIndex = 0;
  for (let end = -1; end < line.length;) {
    const match = CELL.exec(line);
    if (match === null) throw new BadLineError('quotes do not match');
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2]!);
    // A trailing comma is followed by an empty cell.
    end = match[0].endsWith(',') ? CELL.lastIndex - 1 : CELL.lastIndex;
    if (!match[0].endsWith(',')) break;
  }
  return cells;
}

const UNSALTED = { 32: 'md5', 40: 'sha1' } as const;

function storable(stored: string): ImportedPassword['hash'] {
  const unsalted = /^[0-9a-f]+$/i.test(stored) ? UNSALTED[stored.length as keyof typeof UNSALTED] : undefined;
  if (unsalted !== undefined) return { unsalted, digest: stored.toLowerCase() };
  const hash = readPasswordHash(stored);
  const isWhole =
    hash.scheme !== 'aspnet-membership' ||
    (hash.salt.length > 0 && hash.key.length === (hash.digest === 'sha1' ? 20 : 32));
  if (hash.scheme === 'unknown' || !isWhole) throw new BadLineError('the hash is of no known scheme');
  return stored;
}
