import { setTimeout as delay } from 'node:timers/promises';
import { countRows, isWriting } from '#verification/audit/gather.ts';
import type { Journal } from '#verification/traffic/journal.ts';
import { type PlatformUnderLoad, queryPersistently } from '#verification/traffic/platform.ts';
import { readQueues } from '#verification/traffic/queues.ts';
import { databaseNowMs, pauseTriggers } from '#verification/traffic/triggers.ts';
import { seconds } from './report.ts';

const FIRES_LIMIT_MS = 60_000;
/** More than 5 min, the longest retry delay of a business-unit change that finds its database down. */
const DRAIN_LIMIT_MS = 360_000;
/**
 * Time for which the platform must be quiet to count as drained, and the number of check intervals within it.
 */
const QUIET_MS = 1_500;
const QUIET_CHECKS = 5;

/**
 * Pauses the triggers and waits until nothing is in progress: no due trigger, no outbox row, no message. A
 * timeout is recorded as a violation.
 */
export async function drain(platform: PlatformUnderLoad, journal: Journal): Promise<void> {
  const watchedUntilMs = await databaseNowMs(platform);
  const isDue = `WHERE state = 'WAITING' AND next_fire_at <= now()`;
  const haveFired = await pollUntil(
    200,
    FIRES_LIMIT_MS,
    async () => (await countRows(platform, 'triggers', isDue)) === 0,
  );
  if (!haveFired) journal.violations.push(`triggers are still due ${seconds(FIRES_LIMIT_MS)} after the load`);
  journal.firesEnded = await pauseTriggers(platform, watchedUntilMs);
  let quietChecks = 0;
  // One check is not enough: the broker's statistics may miss a delivery in progress for seconds, and its
  // handler may be idle for a second.
  const isDrained = await pollUntil(QUIET_MS / QUIET_CHECKS, DRAIN_LIMIT_MS, async () => {
    const isIdle = (await isQuiet(platform)) && (await haveBeenConsumed(platform, journal));
    quietChecks = isIdle ? quietChecks + 1 : 0;
    return quietChecks > QUIET_CHECKS;
  });
  if (!isDrained)
    journal.violations.push(`something was still in progress ${seconds(DRAIN_LIMIT_MS)} after the load`);
}

/** True if the outbox and all queues except error and skipped queues are empty, and no transaction writes. */
async function isQuiet(platform: PlatformUnderLoad): Promise<boolean> {
  // Reading fails if a queue is deleted during the call.
  const queues = await readQueues(platform).catch(() => null);
  return (
    queues !== null &&
    queues.every(({ name, messages }) => messages === 0 || /_(error|skipped)$/.test(name)) &&
    (await countRows(platform, 'outbox')) === 0 &&
    !(await isWriting(platform))
  );
}

const CONSUMED_CHANGES = `SELECT count(*)::int AS rows FROM task.inbox
  WHERE queue = 'task-service.business-unit-change' AND message_id = ANY ($1::text[])`;

/**
 * True once every acknowledged change of a business unit has been consumed. The broker's counts may miss a
 * message on its way from a retry queue back to its own.
 */
async function haveBeenConsumed(
  platform: PlatformUnderLoad,
  { businessUnitChanges }: Journal,
): Promise<boolean> {
  const ids = businessUnitChanges.map(({ eventId }) => eventId);
  const statement = [CONSUMED_CHANGES, [ids]] as const;
  const [row] = await queryPersistently<{ rows: number }>(platform, 'task', statement);
  return row?.rows === ids.length;
}

/** Repeats `probe` until it returns true. Returns false after the time limit. */
export async function pollUntil(
  intervalMs: number,
  limitMs: number,
  probe: () => Promise<boolean>,
): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (!(await probe())) {
    if (performance.now() > deadline) return false;
    await delay(intervalMs);
  }
  return true;
}
