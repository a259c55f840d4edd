import { setTimeout as delay } from 'node:timers/promises';
import { FriendlyError } from '#platform/errors.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { addSchedules, addTriggers } from '#verification/bench/costs/facilities.ts';
import { type Operation, sender } from '#verification/bench/costs/operations.ts';
import { atPace } from '#verification/bench/costs/pace.ts';
import { PACED_OPERATIONS } from '#verification/bench/costs/paced-operations.ts';
import { type Usage, watchUsage } from '#verification/bench/costs/usage.ts';
import { Watchers } from '#verification/bench/costs/watchers.ts';
import { HttpLoad } from '#verification/bench/load.ts';
import { ratesOf, type Work, type Workload } from './workload.ts';

export interface Span {
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

const WORKERS = 32;
const FIRST_FACILITY = 100_001;
/** Minimum share of the wanted requests. A slower run is refused, because its rate was not the wanted one. */
const MIN_SHARE = 0.95;

/**
 * Generates the load of a workload's busiest hour. Returns the platform's usage after the warm-up.
 * @throws {FriendlyError} if fewer requests were sent than wanted
 */
export async function playMix(platform: TestPlatform, workload: Workload, span: Span): Promise<Usage<void>> {
  const rates = ratesOf(workload);
  const totalSeconds = span.warmUpSeconds + span.seconds;
  const watchers = new Watchers(platform, workload.watchers);
  const players = [];
  for (const operation of PACED_OPERATIONS) players.push(await preparePlayer(platform, operation));
  await addFacilities(platform, workload, totalSeconds);
  const watched = delay(span.warmUpSeconds * 1_000).then(() =>
    watchUsage(platform, () => delay(span.seconds * 1_000)),
  );
  const played = players.map(({ id, play }) => play(totalSeconds, rates[id as Work]));
  const [usage, ...counts] = await Promise.all([watched, ...played]);
  await watchers.end();
  for (const { close } of players) await close();
  requireAll(
    counts,
    players.map(({ id }) => rates[id as Work] * totalSeconds),
  );
  return usage;
}

/** Prepares an operation. Returns a function that sends its requests at a rate. */
async function preparePlayer(platform: TestPlatform, { id, service, prepare }: Operation) {
  const load = new HttpLoad(platform.url(service), WORKERS);
  const send = sender(load, await prepare(platform, load));
  return {
    id,
    play: (seconds: number, perSecond: number): Promise<number> =>
      atPace({ seconds, perSecond, workers: WORKERS }, send),
    close: () => load.close(),
  };
}

/**
 * Adds facilities whose triggers come due one after the other within the run, with their share of the
 * schedules.
 */
async function addFacilities(platform: TestPlatform, workload: Workload, seconds: number): Promise<void> {
  const { fire, instance } = ratesOf(workload);
  const count = Math.round(fire * seconds);
  if (count === 0) return;
  const facilities = { first: FIRST_FACILITY, count };
  await addSchedules(platform, facilities, Math.round(instance / fire));
  await addTriggers(platform, facilities, seconds);
}

function requireAll(counts: readonly number[], wanted: readonly number[]): void {
  const done = counts.reduce((sum, count) => sum + count, 0);
  const total = wanted.reduce((sum, count) => sum + count, 0);
  if (done < total * MIN_SHARE)
    throw new FriendlyError(
      `This machine is too slow: only ${done} of ${Math.round(total)} requests were sent.`,
    );
}
