import { Logger } from '@nestjs/common';
import { SYSTEM_CLOCK, exponentialRetryDelayMs, fullJitterDelayMs, sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import { DatabaseUnavailableError, isConnectionError } from './errors';

/** Limits of `withConnectionRetry`. */
export interface ConnectionRetryOptions {
  /**
   * Waits between attempts in milliseconds. Default: five waits, from 10 ms to 100 s. Source: task messaging
   * spec, Limits.
   */
  delaysMs?: readonly number[];
  /**
   * Time in milliseconds after which no attempt starts. A wait that would exceed it is shortened and followed
   * by the last attempt. No limit unless given.
   */
  deadlineMs?: number;
  /** Aborts the wait; the promise then rejects with the signal's reason. */
  signal?: AbortSignal;
  clock?: Clock;
}

const DELAYS_MS: readonly number[] = [1, 2, 3, 4, 5].map(exponentialRetryDelayMs);

/**
 * Repeats `work` while it fails with a connection error. `work` must be safe to repeat: the connection may be
 * lost after the server has done the work.
 * @throws {DatabaseUnavailableError} when attempts or time run out
 * @throws any other error of `work` at once
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

/**
 * Repeats `connect` until the database can be reached.
 * @param limitMs time in milliseconds after which the last error is thrown; unlimited unless given
 * @throws any error but a connection error at once, e.g. for a wrong password
 */
export async function waitForDatabase<T>(connect: () => Promise<T>, limitMs = Infinity): Promise<T> {
  const logger = new Logger('Database');
  const startedMs = SYSTEM_CLOCK.monotonicMs();
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await connect();
    } catch (error) {
      const waitedMs = SYSTEM_CLOCK.monotonicMs() - startedMs;
      if (!isConnectionError(error) || waitedMs > limitMs) throw error;
      // Log only every tenth failure: waiting for the database is part of starting.
      if (attempt % 10 === 1) logger.warn(`not reachable yet: ${(error as Error).message}`);
    }
    await sleep(fullJitterDelayMs(attempt, BACKOFF));
  }
}
