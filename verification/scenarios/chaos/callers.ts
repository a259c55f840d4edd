import { watchApplications } from '#verification/audit/gather.ts';
import { Load } from '#verification/traffic/load.ts';
import type { Cluster } from './cluster.ts';
import { Followers } from './followers.ts';
import { delaySomeCommits } from './late-commits.ts';

/** Who uses a platform. */
export interface Callers {
  readonly load: Load;
  /** Null: nobody follows the feeds. */
  readonly followers: Followers | null;
}

/** Every caller that there is. */
export async function everyCaller({ platform }: Cluster, seed: number): Promise<Callers> {
  await watchApplications(platform, 'business_unit_facilities');
  await delaySomeCommits(platform);
  const load = await Load.prepare(platform, seed);
  const followers = await Followers.start(load);
  load.start(platform);
  load.startLives();
  return { load, followers };
}

/** Callers who ask for what a release before knows, of whom none may see a failure. */
export async function callersOfRelease({ platform }: Cluster, seed: number): Promise<Callers> {
  await watchApplications(platform, 'business_unit_changes');
  const load = await Load.prepare(platform, seed);
  load.traffic.isStrict = true;
  load.start(platform);
  return { load, followers: null };
}
