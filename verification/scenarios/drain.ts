import { setTimeout as delay } from 'node:timers/promises';
import { countRows, isWriting } from '#verification/audit/gather.ts';
import type { Journal } from '#verification/traffic/journal.ts';
import type { PlatformUnderLoad } from '#verification/traffic/platform.ts';
import { readQueues } from '#verification/traffic/queues.ts';
import { databaseNowMs, pauseTriggers } from '#verification/traffic/triggers.ts';
import { seconds } from './report.ts';

const FIRES_LIMIT_MS = 60_000;
/** Business-unit changes come back after up to 5 min when the database is away each time. */
const DRAIN_LIMIT_MS = 360_000;
/** Nothing may be under way for so long, at each of so many looks. */
const QUIET_MS = 1_500;
const QUIET_LOOKS = 5;

/** Ends the fires and waits until nothing is on its way: no due trigger, no outbox row, no message. What does
 *  not end is a finding. */
export async function drain(platform: PlatformUnderLoad, journal: Journal): Promise<void> {
  const watchedUntilMs = await databaseNowMs(platform);
  const isDue = `WHERE state = 'WAITING' AND next_fire_at <= now()`;
  const haveFired = await until(
    200,
    FIRES_LIMIT_MS,
    async () => (await countRows(platform, 'triggers', isDue)) === 0,
  );
  if (!haveFired) journal.violations.push(`triggers are still due ${seconds(FIRES_LIMIT_MS)} after the load`);
  journal.firesEnded = await pauseTriggers(platform, watchedUntilMs);
  let looks = 0;
  // A delivery in progress may be missing from the broker's statistics for seconds, and its handler may pause
  // for one.
  const isDrained = await until(QUIET_MS / QUIET_LOOKS, DRAIN_LIMIT_MS, async () => {
    looks = (await isQuiet(platform)) ? looks + 1 : 0;
    return looks > QUIET_LOOKS;
  });
  if (!isDrained)
    journal.violations.push(`something was under way ${seconds(DRAIN_LIMIT_MS)} after the load`);
}

/** Nothing is in the outbox or in a queue, but what was put aside, and nobody writes. */
async function isQuiet(platform: PlatformUnderLoad): Promise<boolean> {
  // A queue may be deleted while it is looked at.
  const queues = await readQueues(platform).catch(() => null);
  return (
    queues !== null &&
    queues.every(({ name, messages }) => messages === 0 || /_(error|skipped)$/.test(name)) &&
    (await countRows(platform, 'outbox')) === 0 &&
    !(await isWriting(platform))
  );
}

/** Repeats `probe` until it is true, or the limit has passed: then false. */
export async function until(
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
