import { isNativeError } from 'node:util/types';

const MAX_URL_LENGTH = 1_024;
const MAX_CAUSES = 4;
const TOKEN_LIKE = /eyJ[\w-]{8,}(?:\.[\w-]*)*/g;
const URL_CREDENTIALS = /:\/\/[^\s/@]+@/g;
const HIDDEN = '[redacted]';

/** The part of a request target before its query. */
export function pathOf(target: string): string {
  const end = target.search(/[?#]/);
  return end === -1 ? target : target.slice(0, end);
}

/**
 * A request target fit for logs: names of query parameters stay, values go (a query may hold a token, e.g.
 * `bearerTokenOverride`), and so does what looks like a token in the path.
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

/** The text without what looks like a JSON Web Token or like the credentials of a URL. */
export function hideTokens(text: string): string {
  const withoutTokens = text.includes('eyJ') ? text.replace(TOKEN_LIKE, HIDDEN) : text;
  return withoutTokens.includes('://')
    ? withoutTokens.replace(URL_CREDENTIALS, `://${HIDDEN}@`)
    : withoutTokens;
}

/** What logs show of an error: never a statement's parameters, a row's values, a request or a response. */
interface LoggedError {
  type: string;
  message: string;
  code?: string;
  stack?: string;
  cause?: LoggedError;
  errors?: LoggedError[];
}

/**
 * An error fit for logs. Errors carry whatever their library put on them (TypeORM: the statement's
 * parameters, PostgreSQL: the offending values in `detail`), so only known members pass.
 */
export function logSafeError(error: unknown, depth = 0): LoggedError {
  // `instanceof` misses errors of another realm.
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

/** PostgreSQL quotes the offending input in the messages of class 22 (data exception). */
function messageOf(error: Error, code: unknown): string {
  const quotesInput = typeof code === 'string' && /^22[0-9A-Z]{3}$/.test(code);
  return hideTokens(quotesInput ? error.message.replace(/"[^]*"/, `"${HIDDEN}"`) : error.message);
}

/** The frames of a stack; its first lines repeat the message, which may have been cleaned. */
function stackOf(error: Error, message: string): string {
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  return [`${error.name}: ${message}`, ...frames].join('\n');
}
