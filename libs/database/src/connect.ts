import { Logger } from '@nestjs/common';
import { SYSTEM_CLOCK, fullJitterDelayMs, sleep } from '@platform/time';
import { isConnectionError } from './errors';

const BACKOFF = { baseMs: 100, maxMs: 2_000 };

/**
 * Repeats `connect` until the database is there.
 * @param limitMs gives up, with the last error, after this long; never unless given
 * @throws at once for anything but a connection error, e.g. a wrong password
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
      // Not the error itself each time: waiting for the database is part of starting.
      if (attempt % 10 === 1) logger.warn(`not reachable yet: ${(error as Error).message}`);
    }
    await sleep(fullJitterDelayMs(attempt, BACKOFF));
  }
}
