/** Wait before retry `attempt` (1–5), in milliseconds: 10 · 10^(attempt − 1), so 10 ms to 100 s.
 *  Source: task messaging spec, Limits. @throws {RangeError} if `attempt` is outside 1–5. */
export function exponentialRetryDelayMs(attempt: number): number {
  if (!Number.isInteger(attempt) || attempt < 1 || attempt > 5) {
    throw new RangeError(`retry attempt must be an integer from 1 to 5, got ${String(attempt)}`);
  }
  return 10 ** attempt;
}

/** A wait drawn evenly from 0 up to `min(maxMs, baseMs · 2^(attempt − 1))`, so that contenders spread out.
 *  `attempt` counts from 1. @throws {RangeError} if `attempt` is not a positive integer. */
export function fullJitterDelayMs(
  attempt: number,
  { baseMs, maxMs, random = Math.random }: { baseMs: number; maxMs: number; random?: () => number },
): number {
  if (!Number.isInteger(attempt) || attempt < 1)
    throw new RangeError(`attempt must be 1 or more, got ${String(attempt)}`);
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1)));
}
