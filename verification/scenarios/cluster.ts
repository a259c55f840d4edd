import { everyCaller } from './chaos/callers.ts';
import { inRounds, type RoundScenario } from './chaos/in-rounds.ts';
import { type ChaosArguments, CLUSTER_FAULT_KINDS, planFaults, roundFlags } from './chaos/plan.ts';

/**
 * Faults on three machines with clustered servers: nodes, machines, disks and clocks fail, one fault per
 * round.
 */
export function cluster(args: ChaosArguments): RoundScenario {
  const { seed, rounds, faults, dist, pooler: hasPooler = false, prometheus = false } = args;
  return inRounds({
    seed,
    flags: `--cluster ${hasPooler ? '--pooler ' : ''}${roundFlags(args, CLUSTER_FAULT_KINDS)}`,
    servers: { dist, release: null, isClustered: true, hasPooler },
    startCallers: everyCaller,
    plan: planFaults(seed, rounds, faults),
    prometheus,
  });
}
