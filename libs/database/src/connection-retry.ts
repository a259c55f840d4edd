import { Logger } from '@nestjs/common';
import { SYSTEM_CLOCK, exponentialRetryDelayMs, fullJitterDelayMs, sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import { DatabaseUnavailableError, isConnectionError } from './errors';

/** How often and how long `withConnectionRetry` tries. */
export interface ConnectionRetryOptions {
  /** Waits between attempts in ms; default five, 10 ms → 100 s. Source: task messaging spec, Limits. */
  delaysMs?: readonly number[];
  /**
   * No attempt starts later than this; a longer wait is cut short, then comes the last attempt. No limit
   * unless given.
   */
  deadlineMs?: number;
  /** Ends the waiting; the promise then rejects with its reason. */
  signal?: AbortSignal;
  clock?: Clock;
}

const DELAYS_MS: readonly number[] = [1, 2, 3, 4, 5].map(exponentialRetryDelayMs);

/**
 * Repeats `work` while it fails with a connection error. A connection may be lost after the server did the
 * work: `work` must bear repetition.
 * @throws {DatabaseUnavailableError} when attempts or time run out
 * @throws every other error of `work` at once
 */
export async function withConnectionRetry<T>(
  work: () => Promise<T>,
  { delaysMs = DELAYS_MS, deadlineMs = Infinity, signal, clock = SYSTEM_CLOCK }: ConnectionRetryOptions = {},
): Promise<T> {
  const deadlineAtMs = clock.monotonicMs() + deadlineMs;
  for (let retry = 0; ; retry += 1) {
    try {
      return await work();
    } catch (error) {
      if (!isConnectionError(error)) throw error;
      const remainingMs = deadlineAtMs - clock.monotonicMs();
      const delayMs = delaysMs[retry];
      if (delayMs === undefined || remainingMs <= 0) {
        const message = `the database was not reachable (${retry + 1} attempts)`;
        throw new DatabaseUnavailableError(message, { cause: error });
      }
      await (clock.sleep ?? sleep)(Math.min(delayMs, remainingMs), signal);
    }
  }
}

const BACKOFF = { baseMs: 100, maxMs: 2_000 };

/** Repeats `connect` until the database is there.
 *  @param limitMs gives up, with the last error, after this long; never unless given
 *  @throws at once for anything but a connection error, e.g. a wrong password */
export async function waitForDatabase<T>(connect: () => Promise<T>, limitMs = Infinity): Promise<T> {
  const logger = new Logger('Database');
  const startedMs = SYSTEM_CLOCK.monotonicMs();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await connect();
    } catch (error) {
      const waitedMs = SYSTEM_CLOCK.monotonicMs() - startedMs;
      if (!isConnectionError(error) || waitedMs > limitMs) throw error;
      // Not the error itself each time: waiting for the database is part of starting.
      if (attempt % 10 === 1) logger.warn(`not reachable yet: ${(error as Error).message}`);
    }
    await sleep(fullJitterDelayMs(attempt, BACKOFF));
  }
}
