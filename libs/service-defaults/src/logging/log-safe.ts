import { isNativeError } from 'node:util/types';

const MAX_URL_LENGTH = 1_024;
const MAX_CAUSES = 4;
const TOKEN_LIKE = /eyJ[\w-]{8,}(?:\.[\w-]*)*/g;
const URL_CREDENTIALS = /:\/\/[^\s/@]+@/g;
const HIDDEN = '[redacted]';

/** Returns the part of a request target before its query. */
export function pathOf(target: string): string {
  const end = target.search(/[?#]/);
  return end === -1 ? target : target.slice(0, end);
}

/**
 * Returns a request target that is safe to log. Names of query parameters are kept and their values removed,
 * because a query may hold a token (e.g. `bearerTokenOverride`). Token-like parts of the path are redacted.
 */
export function logSafeUrl(target: string): string {
  const path = pathOf(target);
  const shown = hideTokens(path.length > MAX_URL_LENGTH ? path.slice(0, MAX_URL_LENGTH) : path);
  if (path.length === target.length) return shown;
  const names = target
    .slice(path.length + 1, path.length + 1 + MAX_URL_LENGTH)
    .split('&')
    .map((pair) => pair.split('=', 1)[0] ?? '');
  return `${shown}?${hideTokens(names.join('&'))}`;
}

/** Returns the text with everything redacted that looks like a JSON Web Token or the credentials of a URL. */
export function hideTokens(text: string): string {
  const withoutTokens = text.includes('eyJ') ? text.replace(TOKEN_LIKE, HIDDEN) : text;
  return withoutTokens.includes('://')
    ? withoutTokens.replace(URL_CREDENTIALS, `://${HIDDEN}@`)
    : withoutTokens;
}

/**
 * An error as it is logged. It has no member for a statement's parameters, a row's values, a request or a
 * response.
 */
interface LoggedError {
  type: string;
  message: string;
  code?: string;
  stack?: string;
  cause?: LoggedError;
  errors?: LoggedError[];
}

/**
 * Returns an error that is safe to log. Libraries attach data to errors (TypeORM: the statement's parameters;
 * PostgreSQL: the offending values in `detail`), so only known members are kept.
 */
export function logSafeError(error: unknown, depth = 0): LoggedError {
  // `instanceof` is false for errors of another realm.
  if (!isNativeError(error) && !(error instanceof Error))
    return { type: typeof error, message: hideTokens(String(error)) };
  const { code, cause, errors } = error as Error & { code?: unknown; errors?: unknown };
  const message = messageOf(error, code);
  const logged: LoggedError = { type: error.name, message };
  if (typeof code === 'string') logged.code = code;
  if (error.stack !== undefined) logged.stack = stackOf(error, message);
  if (depth >= MAX_CAUSES) return logged;
  if (cause !== undefined) logged.cause = logSafeError(cause, depth + 1);
  if (Array.isArray(errors)) {
    logged.errors = errors.slice(0, MAX_CAUSES).map((each) => logSafeError(each, depth + 1));
  }
  return logged;
}

/**
 * Returns a message without quoted input: PostgreSQL quotes the offending input in messages of class 22 (data
 * exception).
 */
function messageOf(error: Error, code: unknown): string {
  const quotesInput = typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code);
  return hideTokens(quotesInput ? error.message.replace(/"[^]*"/, `"${HIDDEN}"`) : error.message);
}

/**
 * Returns the cleaned message followed by the frames of the error's stack. The first lines of the stack are
 * dropped, because they repeat the original message.
 */
function stackOf(error: Error, message: string): string {
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  return [`${error.name}: ${message}`, ...frames].join('\n');
}
