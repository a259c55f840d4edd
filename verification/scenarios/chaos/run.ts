import { setTimeout as delay } from 'node:timers/promises';
import type { Journal } from '#verification/traffic/journal.ts';
import type { Load } from '#verification/traffic/load.ts';
import { atHorizon } from '#verification/traffic/recurrences.ts';
import { createSchedule } from '#verification/traffic/tasks.ts';
import { plantTriggers } from '#verification/traffic/triggers.ts';
import { pollUntil } from '../drain.ts';
import { seconds } from '../report.ts';
import type { Report } from '../scenario.ts';
import type { Testbed } from './testbed.ts';
import { injectFault } from './faults.ts';
import { describeFault, type PlannedFault } from './plan.ts';

export type RoundResult = Awaited<ReturnType<typeof runRound>>;

const BETWEEN_ROUNDS_MS = 1_500;
const TRIGGERS_PER_ROUND = 12;
const RECOVERY_LIMIT_MS = 60_000;

/** Injects the planned faults under load, one after the other. */
export async function runRounds(
  testbed: Testbed,
  load: Load,
  plan: readonly PlannedFault[],
  report: Report,
): Promise<RoundResult[]> {
  const rounds: RoundResult[] = [];
  for (const fault of plan) {
    const round = await runRound(testbed, load, fault);
    rounds.push(round);
    report(describeRound(round, plan.length));
  }
  return rounds;
}

async function runRound(testbed: Testbed, load: Load, fault: PlannedFault) {
  const { journal, traffic } = load;
  const before = journal.acknowledged;
  const [eachMinute] = await plantTriggers(testbed.platform, journal, load.zones, TRIGGERS_PER_ROUND);
  // This schedule gains an instance each minute only if the fires of the trigger `eachMinute` generate
  // instances.
  if (eachMinute !== undefined)
    await createSchedule(load.context, eachMinute.facilityId, { kind: atHorizon() });
  traffic.phase = fault.kind;
  traffic.watchPauses();
  // The observed effect of the fault. Null: it could not be injected.
  const proof = await injectFault({ testbed, load, fault }).catch((error: unknown) => {
    journal.violations.push(`round ${fault.round}, ${describeFault(fault)}: ${String(error)}`);
    return null;
  });
  const healedAtMs = performance.now();
  await untilHealthy(testbed, journal, fault);
  const recoveredAfterMs = performance.now() - healedAtMs;
  traffic.phase = `after ${fault.kind}`;
  if (testbed.isClustered)
    await testbed.engines.untilHealthy().catch((error: unknown) => {
      journal.violations.push(`round ${fault.round}, after ${describeFault(fault)}: ${String(error)}`);
    });
  await delay(BETWEEN_ROUNDS_MS);
  const pausesMs = traffic.pausesMs();
  return { fault, proof, recoveredAfterMs, pausesMs, acknowledged: journal.acknowledged - before };
}

/**
 * Waits until every replica is ready and its balancer connects clients to it. A timeout is recorded as a
 * violation. A replica that ended by itself is restarted, and recorded as a violation.
 */
async function untilHealthy(testbed: Testbed, journal: Journal, fault: PlannedFault): Promise<void> {
  const { replicas } = testbed;
  let unready: string[] = [];
  const isHealthy = await pollUntil(100, RECOVERY_LIMIT_MS, async () => {
    const states = await Promise.all(replicas.map(({ program }) => program.isReady()));
    unready = replicas.filter((_, index) => states[index] === false).map(({ label }) => label);
    for (const { label, program } of replicas) {
      if (!program.hasEnded()) continue;
      journal.violations.push(`${label} ended by itself during ${describeFault(fault)}`);
      await program.spawn();
    }
    return unready.length === 0 && testbed.isBalanced();
  });
  if (isHealthy) return;
  const after = `${seconds(RECOVERY_LIMIT_MS)} after ${describeFault(fault)}`;
  journal.violations.push(`not ready ${after}: ${unready.join(', ')}`);
}

function describeRound(
  { fault, proof, recoveredAfterMs, pausesMs, acknowledged }: RoundResult,
  rounds: number,
): string {
  const mark = proof === null ? '✘' : '✔';
  const number = String(fault.round).padStart(String(rounds).length);
  const what = `${describeFault(fault)}: ${proof ?? 'not injected'}`;
  const pauses = Object.entries(pausesMs).map(([kind, ms]) => `${kind} ${seconds(ms)}`);
  return `${mark} ${number}/${rounds} ${what}; ready after ${seconds(recoveredAfterMs)}, ${acknowledged} acknowledged, pauses: ${pauses.join(', ')}`;
}
