import { isNativeError } from 'node:util/types';
import { CommandError } from '@platform/service-defaults';

/** The database cannot be reached, or not in time. Mapped to 503. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

/** Concurrent transactions kept colliding until attempts or time ran out. Mapped to 503. */
export class ContentionError extends Error {
  override readonly name = 'ContentionError';
}

/** SQLSTATEs of a serialization failure and of a deadlock: the transaction is to be repeated. */
const RETRY_CODES = new Set(['40001', '40P01']);

/**
 * Codes of an unavailable database. From PostgreSQL: shutting down, crashed, starting, idle session
 * terminated, idle transaction terminated, and read-only (a standby or a demoted primary). From sockets: the
 * `E…` codes. The classes 08 (connection) and 53 (no more connections, disk full, out of memory) are added by
 * pattern.
 */
const CONNECTION_CODES = new Set([
  '57P01',
  '57P02',
  '57P03',
  '57P05',
  '25P03',
  '25006',
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Messages of errors that pg and pg-pool throw without a code. */
const CONNECTION_MESSAGES = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Query read timeout',
  'is not queryable',
  'Cannot use a pool after calling end on the pool',
];

/** Names of errors thrown while the data source is not, or no longer, connected. */
const CONNECTION_NAMES = new Set([
  DatabaseUnavailableError.name,
  'CannotExecuteNotConnectedError',
  'DataSourceNotFoundError',
]);

interface DriverFailure {
  code?: unknown;
  constraint?: unknown;
  /** The driver's error, set by TypeORM's wrapper. */
  driverError?: unknown;
  /** The errors of an AggregateError, one per address that was tried. */
  errors?: unknown;
}

/**
 * Whether the database failed rather than the statement: connection refused, lost, timed out or none free in
 * time; server starting, stopping, read-only, or out of disk or memory. The same statement may succeed later.
 * Unwraps TypeORM's wrapper and AggregateError.
 */
export function isConnectionError(error: unknown): boolean {
  if (!isError(error)) return false;
  if (CONNECTION_NAMES.has(error.name)) return true;
  const code = codeOf(error);
  if (code !== undefined && (CONNECTION_CODES.has(code) || /^(08|53)[0-9A-Z]{3}$/.test(code))) return true;
  const { driverError, errors } = error as DriverFailure;
  if (Array.isArray(errors)) return errors.some(isConnectionError);
  if (driverError !== undefined && driverError !== error) return isConnectionError(driverError);
  return CONNECTION_MESSAGES.some((message) => error.message.includes(message));
}

/** Whether the whole transaction may succeed if repeated (40001, 40P01). */
export function isSerializationFailure(error: unknown): boolean {
  return RETRY_CODES.has(codeOf(error) ?? '');
}

/** Whether a unique constraint was violated (23505). With `constraint`, whether it was that one. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  if (codeOf(error) !== '23505') return false;
  return constraint === undefined || memberOf(error, 'constraint') === constraint;
}

/** Whether a referenced row does not exist (23503). */
export function isForeignKeyViolation(error: unknown): boolean {
  return codeOf(error) === '23503';
}

/**
 * Whether the server cancelled a statement (57014), usually because it took too long, or a statement waited
 * too long for a lock (55P03).
 */
export function isStatementTimeout(error: unknown): boolean {
  return codeOf(error) === '57014' || isLockTimeout(error);
}

/** Whether a statement did not get its lock in time (55P03). */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03';
}

/**
 * Whether a statement did not get its lock in time (55P03) or lost a deadlock (40P01). The statement may be
 * repeated.
 */
export function isLockRefusal(error: unknown): boolean {
  return isLockTimeout(error) || codeOf(error) === '40P01';
}

/** Whether the role lacks the privilege (42501). */
export function isInsufficientPrivilege(error: unknown): boolean {
  return codeOf(error) === '42501';
}

/** Whether a text holds U+0000, which PostgreSQL cannot store (22021, 22P05). */
export function isUnstorableText(error: unknown): boolean {
  const code = codeOf(error);
  return code === '22021' || code === '22P05';
}

/**
 * Whether PostgreSQL refused the statement for its contents or its data, or because a lock was not granted in
 * time (55P03). It was rolled back and may be sent again, in parts for example. False for outages, timeouts
 * and errors of our own: after those it is unknown whether the statement took effect.
 */
export function isStatementFailure(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return /^[0-9A-Z]{5}$/.test(code) && code !== '57014' && !isConnectionError(error);
}

/**
 * Whether the server had a fault of its own, such as a damaged page or a disk error (classes 58 and XX).
 * Neither the statement nor the row need be at fault.
 */
export function isServerFault(error: unknown): boolean {
  return /^(58|XX)[0-9A-Z]{3}$/.test(codeOf(error) ?? '');
}

/**
 * Whether the contents of a row made a statement fail: damaged storage (class XX), a value that cannot be
 * converted (class 22), a violated CHECK, a limit of PostgreSQL (class 54). Other rows may be fine.
 */
export function isRowFailure(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return /^(22|54|XX)[0-9A-Z]{3}$/.test(code) || code === '23514';
}

/** Whether a value is an error, also one of another realm, as Node's own errors are inside Jest's sandbox. */
function isError(error: unknown): error is Error {
  return error instanceof Error || isNativeError(error);
}

/** Returns the SQLSTATE or the socket's code, unwrapping TypeORM's wrapper; undefined if there is none. */
function codeOf(error: unknown): string | undefined {
  const code = memberOf(error, 'code');
  return typeof code === 'string' ? code : undefined;
}

function memberOf(error: unknown, member: 'code' | 'constraint'): unknown {
  if (!isError(error)) return undefined;
  const failure = error as DriverFailure;
  return failure[member] ?? (failure.driverError as DriverFailure | undefined)?.[member];
}

const TOO_LONG =
  'a statement took too long, or waited too long for another transaction’s lock: see pg_stat_activity, and try again';

const ADVICE: Readonly<Record<string, string>> = {
  '28P01': 'the database refuses the user or the password',
  '28000': 'the database refuses the user',
  '3D000': 'there is no such database',
  '42501': 'this database role may not do that: set MIGRATION_DATABASE_URL to the owner’s address',
  '42P01': 'the database has no tables of the service yet: migrate it first',
  '25006':
    'the database takes no writes: it is a standby or set to be read-only; use the address of the primary',
  '57014': TOO_LONG,
  '55P03': TOO_LONG,
  '3F000': 'the database has no tables of the service yet: migrate it first',
};

/**
 * Returns one line of advice for an operator whose database refuses the role or cannot be reached, without
 * any statement or password; null for any other error.
 */
export function databaseAdvice(error: unknown): string | null {
  const advice = ADVICE[codeOf(error) ?? ''];
  if (advice !== undefined) return advice;
  return isConnectionError(error) ? `the database cannot be reached: ${messageOf(error)}` : null;
}

/**
 * Runs `work` of a command line, and throws a CommandError with advice for any error that `databaseAdvice`
 * knows.
 */
export async function withDatabaseAdvice<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const advice = databaseAdvice(error);
    throw advice === null ? error : new CommandError(advice, { cause: error });
  }
}

/**
 * Returns the message of an error. An AggregateError (one error per address that was tried) has none itself,
 * so its errors' messages are joined.
 */
function messageOf(error: unknown): string {
  const { message, errors } = error as { message?: string; errors?: readonly unknown[] };
  if (message !== undefined && message !== '') return message;
  return errors?.map(messageOf).join(', ') ?? String(error);
}
