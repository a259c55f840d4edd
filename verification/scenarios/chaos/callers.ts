import { watchApplications } from '#verification/audit/gather.ts';
import { Load } from '#verification/traffic/load.ts';
import type { Testbed } from './testbed.ts';
import { Followers } from './followers.ts';
import { delaySomeCommits } from './late-commits.ts';

/** The callers of a platform. */
export interface Callers {
  readonly load: Load;
  /** Null: no reader follows the feeds. */
  readonly followers: Followers | null;
}

/** Starts all callers. */
export async function everyCaller({ platform }: Testbed, seed: number): Promise<Callers> {
  await watchApplications(platform, 'business_unit_facilities');
  await delaySomeCommits(platform);
  const load = await Load.prepare(platform, seed);
  const followers = await Followers.start(load);
  load.start(platform);
  load.startScheduleChanges();
  return { load, followers };
}

/** Starts the callers that an earlier release supports too. None of their requests may fail. */
export async function callersOfRelease({ platform }: Testbed, seed: number): Promise<Callers> {
  await watchApplications(platform, 'business_unit_changes');
  const load = await Load.prepare(platform, seed);
  load.traffic.isStrict = true;
  load.start(platform);
  return { load, followers: null };
}
