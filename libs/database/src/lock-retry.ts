import { Logger } from '@nestjs/common';
import { CommandError } from '@platform/service-defaults';
import { fullJitterDelayMs, sleep, SYSTEM_CLOCK } from '@platform/time';
import { isLockRefusal } from './errors';

/** Maximum wait of a migration's statement for a lock. Every statement queued behind it waits as long. */
export const STATEMENT_LOCK_TIMEOUT_MS = 1_000;

/** Maximum wait for the migration lock, and again for the locks of each migration and of the grants. */
export interface LockWaiting {
  readonly limitMs: number;
}

/**
 * Minimum pause between attempts, except before the last one. During it, requests queued behind the lock can
 * finish.
 */
const MIN_PAUSE_MS = 1_000;
const PAUSE = { baseMs: 1_000, maxMs: 10_000 };

/**
 * Runs `attempt`, and repeats it while a lock is refused to one of its statements. Each statement waits at
 * most `STATEMENT_LOCK_TIMEOUT_MS`.
 * @param attempt must be safe to repeat, and must leave no transaction open when it fails
 * @throws {CommandError} when `limitMs` has passed
 */
export async function withLockRetry<T>(
  name: string,
  attempt: () => Promise<T>,
  { limitMs }: LockWaiting,
): Promise<T> {
  const logger = new Logger('Migrations');
  const startedMs = SYSTEM_CLOCK.monotonicMs();
  for (let count = 1; ; count += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (!isLockRefusal(error)) throw error;
      const waitedMs = SYSTEM_CLOCK.monotonicMs() - startedMs;
      if (waitedMs >= limitMs) throw new CommandError(lockAdvice(name, limitMs), { cause: error });
      logger.log(
        `${name}: another transaction holds a lock that this migration needs; trying again ` +
          `(attempt ${count + 1}, ${seconds(waitedMs)} of at most ${seconds(limitMs)})`,
      );
      const pauseMs = MIN_PAUSE_MS + fullJitterDelayMs(count, PAUSE);
      await sleep(Math.max(0, Math.min(pauseMs, limitMs - waitedMs)));
    }
  }
}

function lockAdvice(name: string, limitMs: number): string {
  return (
    `${name} did not get a lock within ${seconds(limitMs)}, because another transaction (a dump, for example) holds a table that this ` +
    'migration changes. Wait for it or end it (see pg_stat_activity), then migrate again: applied migrations are kept.'
  );
}

function seconds(ms: number): string {
  return `${String(Math.round(ms / 1_000))} s`;
}
