/**
 * The source of time for application code. Decisions that replicas must agree on use the database's `now()`
 * instead.
 */
export interface Clock {
  now(): Date;
  /** Returns milliseconds from an arbitrary origin, never decreasing. For measuring durations. */
  monotonicMs(): number;
  /** Waits for `durationMs`. If absent, callers use this module's `sleep`. Tests set it to shorten waits. */
  sleep?(durationMs: number, signal?: AbortSignal): Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
};

/** A clock that a test moves by hand. */
export class ManualClock implements Clock {
  private elapsedMs = 0;
  private readonly startMs: number;

  constructor(start: string | Date) {
    this.startMs = new Date(start).getTime();
  }

  now(): Date {
    return new Date(this.startMs + this.elapsedMs);
  }

  monotonicMs(): number {
    return this.elapsedMs;
  }

  advance(durationMs: number): void {
    this.elapsedMs += durationMs;
  }
}

/** Returns a clock that always shows `instant`. */
export function fixedClock(instant: string | Date): Clock {
  return new ManualClock(instant);
}

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/** Resolves after `durationMs`. Rejects with the signal's reason as soon as `signal` aborts. */
export function sleep(durationMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, durationMs);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/**
 * Settles as `work` does, or rejects with `timeoutError()` after `timeoutMs`. The work itself continues; its
 * late result is ignored.
 */
export function withTimeout<T>(
  work: Promise<T>,
  timeoutMs: number,
  timeoutError = () => new Error(`no answer within ${timeoutMs} ms`),
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(timeoutError()), timeoutMs);
    const ended = (): void => clearTimeout(timer);
    work.then(resolve, reject).then(ended, ended);
  });
}

/** Checks `condition` every `pollMs`. Resolves to true as soon as it holds, or to false after `timeoutMs`. */
export async function waitUntil(
  condition: () => boolean,
  { timeoutMs, pollMs }: { timeoutMs: number; pollMs: number },
): Promise<boolean> {
  const deadlineMs = performance.now() + timeoutMs;
  while (!condition()) {
    if (performance.now() > deadlineMs) return false;
    await sleep(pollMs);
  }
  return true;
}

/**
 * Returns the delay before retry `attempt` (1–5), in milliseconds: 10 · 10^(attempt − 1), so 10 ms to 100 s.
 * Source: task messaging spec, Limits.
 * @throws {RangeError} if `attempt` is outside 1–5
 */
export function exponentialRetryDelayMs(attempt: number): number {
  if (!Number.isInteger(attempt) || attempt < 1 || attempt > 5) {
    throw new RangeError(`retry attempt must be an integer from 1 to 5, got ${String(attempt)}`);
  }
  return 10 ** attempt;
}

/**
 * Returns a random delay in milliseconds, uniform from 0 up to `min(maxMs, baseMs · 2^(attempt − 1))`, so
 * that competing clients spread out. `attempt` counts from 1.
 * @throws {RangeError} if `attempt` is not a positive integer
 */
export function fullJitterDelayMs(
  attempt: number,
  { baseMs, maxMs, random = Math.random }: { baseMs: number; maxMs: number; random?: () => number },
): number {
  if (!Number.isInteger(attempt) || attempt < 1)
    throw new RangeError(`attempt must be 1 or more, got ${String(attempt)}`);
  return Math.floor(random() * Math.min(maxMs, baseMs * 2 ** (attempt - 1)));
}
