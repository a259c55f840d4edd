import { callersOfRelease } from './chaos/callers.ts';
import { inRounds, type RoundScenario } from './chaos/in-rounds.ts';
import { type ChaosArguments, planUpgrade } from './chaos/plan.ts';
import { buildRelease } from './chaos/release.ts';
import type { Report } from './scenario.ts';

/**
 * Starts a platform from an earlier release. Each service is rolled to the present build, then each is rolled
 * back.
 * @param commit the commit of the release
 */
export function upgrade(commit: string, args: ChaosArguments, report: Report): RoundScenario {
  const { seed, dist, prometheus = false } = args;
  return inRounds({
    seed,
    flags: `--upgrade-from ${commit}`,
    servers: { dist, release: buildRelease(commit, report), isClustered: false, hasPooler: false },
    startCallers: callersOfRelease,
    plan: planUpgrade(seed),
    prometheus,
  });
}
