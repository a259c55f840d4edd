import { isNativeError } from 'node:util/types';
import { CommandError } from '@platform/service-defaults';

/** The database cannot be reached, or not in time. Answered as 503. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

/** Concurrent transactions kept colliding until attempts or time ran out. Answered as 503. */
export class ContentionError extends Error {
  override readonly name = 'ContentionError';
}

/** Serialization failure and deadlock: PostgreSQL asks for the transaction to be repeated. */
const RETRY_CODES = new Set(['40001', '40P01']);

/**
 * Codes of PostgreSQL (shutting down, crashed, starting; session ended for standing still; read-only, as a
 * server is that is not the primary or no longer) and of sockets. Classes 08 (connection) and 53 (no more
 * connections, disk full, out of memory) come on top.
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

/** pg and pg-pool raise these without a code. */
const CONNECTION_MESSAGES = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Query read timeout',
  'is not queryable',
  'Cannot use a pool after calling end on the pool',
];

/** TypeORM raises these when the data source is not (or no longer) connected. */
const CONNECTION_NAMES = new Set([
  DatabaseUnavailableError.name,
  'CannotExecuteNotConnectedError',
  'DataSourceNotFoundError',
]);

interface DriverFailure {
  code?: unknown;
  constraint?: unknown;
  /** TypeORM keeps the driver's error here. */
  driverError?: unknown;
  /** An AggregateError: one per address that was tried. */
  errors?: unknown;
}

/**
 * True when the database failed, as opposed to the statement: connection refused, lost, timed out, none free
 * in time; server starting, stopping, read-only, or out of disk or memory. The same statement may succeed
 * later. Looks through TypeORM's wrapper and through AggregateError.
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

/** True for 40001 and 40P01: repeating the whole transaction may succeed. */
export function isSerializationFailure(error: unknown): boolean {
  return RETRY_CODES.has(codeOf(error) ?? '');
}

/** True for 23505; with `constraint` only for that one. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  if (codeOf(error) !== '23505') return false;
  return constraint === undefined || memberOf(error, 'constraint') === constraint;
}

/** True for 23503: a row that is referred to does not exist. */
export function isForeignKeyViolation(error: unknown): boolean {
  return codeOf(error) === '23503';
}

/**
 * True when the server or the client gave up on a statement that took too long (57014) or waited too long for
 * a lock (55P03).
 */
export function isStatementTimeout(error: unknown): boolean {
  return codeOf(error) === '57014' || isLockTimeout(error);
}

/** True when a statement did not get its lock in time (55P03). */
export function isLockTimeout(error: unknown): boolean {
  return codeOf(error) === '55P03';
}

/**
 * True when a statement did not get its lock in time (55P03) or lost a deadlock (40P01). It may be repeated.
 */
export function isLockRefusal(error: unknown): boolean {
  return isLockTimeout(error) || codeOf(error) === '40P01';
}

/** True for 42501: the role may not do that. */
export function isInsufficientPrivilege(error: unknown): boolean {
  return codeOf(error) === '42501';
}

/** True for 22021 and 22P05: a text holds what PostgreSQL has no place for, which is U+0000. */
export function isUnstorableText(error: unknown): boolean {
  const code = codeOf(error);
  return code === '22021' || code === '22P05';
}

/**
 * True when PostgreSQL refused the statement for what it says or meets, a lock that it did not get in time
 * (55P03) included: it was rolled back and may be sent again, in parts for example. Not for outages,
 * timeouts, and errors of our own: they do not tell whether the statement took effect.
 */
export function isStatementFailure(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return /^[0-9A-Z]{5}$/.test(code) && code !== '57014' && !isConnectionError(error);
}

/** True when the server met a fault of its own, such as a damaged page or an error of its disk (classes 58
 *  and XX): it need not be the statement's or the row's. */
export function isServerFault(error: unknown): boolean {
  return /^(58|XX)[0-9A-Z]{3}$/.test(codeOf(error) ?? '');
}

/**
 * True when the contents of a row made a statement fail: damaged storage (class XX), a value that cannot be
 * converted (class 22), a violated CHECK, a limit of PostgreSQL (class 54). Other rows may be fine.
 */
export function isRowFailure(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return /^(22|54|XX)[0-9A-Z]{3}$/.test(code) || code === '23514';
}

/** Also for errors of another realm: Node's own ones are that inside a test's sandbox. */
function isError(error: unknown): error is Error {
  return error instanceof Error || isNativeError(error);
}

/** The SQLSTATE or the socket's code, through TypeORM's wrapper; undefined when there is none. */
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
  'a statement waited too long, for a lock that another transaction holds or because there is much to do: see pg_stat_activity, and try again';

const ADVICE: Readonly<Record<string, string>> = {
  '28P01': 'the database refuses the user or the password',
  '28000': 'the database refuses the user',
  '3D000': 'there is no such database',
  '42501': 'this database role may not do that: give the owner’s address in MIGRATION_DATABASE_URL',
  '42P01': 'the database has no tables of the service yet: migrate it first',
  '25006':
    'the database takes no writes: it is a standby or set to be read-only; give the address of the primary',
  '57014': TOO_LONG,
  '55P03': TOO_LONG,
  '3F000': 'the database has no tables of the service yet: migrate it first',
};

/**
 * What an operator can do about a database that refuses the role or cannot be reached, in one line without
 * any statement or password; null for any other error.
 */
export function databaseAdvice(error: unknown): string | null {
  const advice = ADVICE[codeOf(error) ?? ''];
  if (advice !== undefined) return advice;
  return isConnectionError(error) ? `the database cannot be reached: ${messageOf(error)}` : null;
}

/** Runs work of a command line; what `databaseAdvice` knows is thrown as a CommandError that says it. */
export async function withDatabaseAdvice<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const advice = databaseAdvice(error);
    throw advice === null ? error : new CommandError(advice, { cause: error });
  }
}

/** An AggregateError (one error per address that was tried) has no message of its own. */
function messageOf(error: unknown): string {
  const { message, errors } = error as { message?: string; errors?: readonly unknown[] };
  if (message !== undefined && message !== '') return message;
  return errors?.map(messageOf).join(', ') ?? String(error);
}
