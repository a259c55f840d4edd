/** The database cannot be reached (or not in time). Answered as 503. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

/** Concurrent transactions kept colliding until attempts or time ran out. Answered as 503. */
export class ContentionError extends Error {
  override readonly name = 'ContentionError';
}

/** True when the connection to the database failed, as opposed to the statement. */
export function isConnectionError(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError;
}

/** True for 40001 and 40P01: repeating the whole transaction may succeed. */
export function isSerializationFailure(error: unknown): boolean {
  return error instanceof ContentionError;
}

/** True for 23505, of the named constraint if given. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  return error instanceof Error && error.message === constraint;
}
