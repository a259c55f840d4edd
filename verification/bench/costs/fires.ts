import { setTimeout as delay } from 'node:timers/promises';
import type { TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';
import { type Cost, costOf } from './cost.ts';
import { addSchedules, addTriggers, countGenerated, type Facilities } from './facilities.ts';
import { type Usage, watchUsage } from './usage.ts';

const FIRES_PER_SECOND = 20;
const SCHEDULES_OF_FIRING = 10;

/**
 * Measures the cost of a fire, with its message and its run of generation, and of each generated instance.
 */
export async function costsOfFires(
  platform: TestPlatform,
  seconds: number,
  idle: Usage<void>,
): Promise<{ fire: Cost; instance: Cost }> {
  const count = Math.ceil(FIRES_PER_SECOND * seconds);
  const watchFires = async (first: number, schedules: number): Promise<Cost> => {
    const facilities = { first, count };
    if (schedules > 0) await addSchedules(platform, facilities, schedules);
    const usage = await watchUsage(platform, () => fire(platform, facilities, { seconds, schedules }));
    return costOf(usage, 'task', { idle, count });
  };
  const fireOnly = await watchFires(100_001, 0);
  const withInstances = await watchFires(200_001, SCHEDULES_OF_FIRING);
  const ofEach = (name: keyof Cost): number => (withInstances[name] - fireOnly[name]) / SCHEDULES_OF_FIRING;
  return {
    fire: fireOnly,
    instance: {
      service: ofEach('service'),
      postgresql: ofEach('postgresql'),
      rabbitmq: ofEach('rabbitmq'),
      walBytes: ofEach('walBytes'),
    },
  };
}

const FIRE_TIMEOUT_MS = 60_000;

/** Makes facilities fire within `seconds`, and waits until their instances exist. */
async function fire(
  platform: TestPlatform,
  facilities: Facilities,
  { seconds, schedules }: { seconds: number; schedules: number },
): Promise<void> {
  await addTriggers(platform, facilities, seconds);
  await delay(seconds * 1_000);
  const expectFired = async (): Promise<void> => {
    const { instances, due } = await countGenerated(platform, facilities);
    if (due > 0 || instances < facilities.count * schedules)
      throw new Error(`${due} triggers are still due, ${instances} instances exist`);
  };
  await eventually(expectFired, { timeoutMs: FIRE_TIMEOUT_MS, intervalMs: 200 });
}
