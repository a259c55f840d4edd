import { callersOfRelease } from './chaos/callers.ts';
import { inRounds, type RoundScenario } from './chaos/in-rounds.ts';
import { type ChaosArguments, planUpgrade } from './chaos/plan.ts';
import { buildRelease } from './chaos/release.ts';
import type { Report } from './scenario.ts';

/**
 * A platform of a release before: each service is rolled to the present build, then each back. @param commit
 * the release's
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
