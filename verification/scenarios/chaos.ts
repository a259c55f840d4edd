import { everyCaller } from './chaos/callers.ts';
import { inRounds, type RoundScenario } from './chaos/in-rounds.ts';
import { type ChaosArguments, FAULT_KINDS, planFaults, roundFlags } from './chaos/plan.ts';

/** Faults on one machine: one server of each kind and two replicas of each service, one fault per round. */
export function chaos(args: ChaosArguments): RoundScenario {
  const { seed, rounds, faults, dist, prometheus = false } = args;
  return inRounds({
    seed,
    flags: roundFlags(args, FAULT_KINDS),
    servers: { dist, release: null, isClustered: false, hasPooler: false },
    startCallers: everyCaller,
    plan: planFaults(seed, rounds, faults),
    prometheus,
  });
}
