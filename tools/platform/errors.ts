/** An error whose message is written for the user; printed without a stack. */
export class FriendlyError extends Error {
  override readonly name = 'FriendlyError';
}

/** Whether `error` is a system error with one of these codes (`ENOENT`, `ESRCH`, …). */
export function isErrorCode(error: unknown, ...codes: string[]): boolean {
  // Not instanceof: under Jest, Node's own errors come from another realm.
  return typeof error === 'object' && error !== null && 'code' in error && codes.includes(String(error.code));
}
