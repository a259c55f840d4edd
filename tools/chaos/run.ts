import { setTimeout as delay } from 'node:timers/promises';
import type { TestPlatform } from '#platform/test-platform.ts';
import { auditRun } from './audit/audit.ts';
import type { Check } from './audit/check.ts';
import { gatherFacts, readOutbox, readQueues, watchApplications } from './audit/gather.ts';
import { auditLogs, auditTokens, auditTraffic } from './audit/replicas.ts';
import type { Cluster } from './cluster.ts';
import { injectFault } from './faults.ts';
import { Load } from './load/load.ts';
import { pauseTriggers, plantTriggers } from './load/tasks.ts';
import { describeFault, type FaultKind, planFaults, type PlannedFault } from './plan.ts';
import { copyPublishedMessages } from './published-messages.ts';

export interface RunOptions {
  readonly seed: number;
  readonly rounds: number;
  readonly faults: readonly FaultKind[];
  readonly durationMs: number;
  readonly report: (line: string) => void;
}

/** One round as it went. */
export interface RoundResult {
  readonly fault: PlannedFault;
  /** What was seen of the fault from outside; null: it could not be injected. */
  readonly proof: string | null;
  /** From the end of the fault until every replica was ready again. */
  readonly recoveredAfterMs: number;
  readonly acknowledged: number;
}

export interface RunResult {
  readonly seed: number;
  readonly rounds: readonly RoundResult[];
  readonly checks: readonly Check[];
  readonly outcomes: Readonly<Record<string, number>>;
  readonly longestMs: Readonly<Record<string, number>>;
  readonly attempts: number;
  readonly lostAnswers: number;
  readonly repeatedMessages: number;
  readonly slowestRevocationMs: number;
  readonly drainedAfterMs: number;
}

const WARM_UP_MS = 2_000;
const BETWEEN_ROUNDS_MS = 1_500;
const TRIGGERS_PER_ROUND = 12;
const RECOVERY_LIMIT_MS = 60_000;
/** Business-unit changes come back after 5 s, 30 s, 1 min and 3 min when the database is away each time. */
const DRAIN_LIMIT_MS = 300_000;

/** Brings a platform up, breaks it round after round under load, and audits what is left. The platform is gone afterwards. */
export async function runChaos(cluster: Cluster, options: RunOptions): Promise<RunResult> {
  const { report, seed } = options;
  await cluster.start();
  const { platform } = cluster;
  await watchApplications(platform);
  await copyPublishedMessages(platform);
  const load = await Load.prepare(platform, seed);
  load.start(platform);
  await delay(WARM_UP_MS);
  const rounds: RoundResult[] = [];
  const endsAtMs = performance.now() + options.durationMs;
  for (const fault of planFaults(seed, options.rounds, options.faults)) {
    if (performance.now() > endsAtMs) break;
    rounds.push(await runRound(cluster, load, fault));
    report(describeRound(rounds.at(-1) as RoundResult, options.rounds));
  }
  await load.finish();
  const drainedAfterMs = await drain(platform);
  report(`load ended, drained after ${seconds(drainedAfterMs)}`);
  const facts = await gatherFacts(platform);
  const { journal, traffic } = load;
  const checks = [
    ...auditRun(journal, facts),
    await auditTokens(cluster, journal),
    auditLogs(cluster, journal),
    auditTraffic(traffic, rounds),
  ];
  return {
    seed,
    rounds,
    checks,
    outcomes: Object.fromEntries(traffic.outcomes),
    longestMs: Object.fromEntries(traffic.longestMs),
    attempts: traffic.attempts,
    lostAnswers: traffic.lostAnswers,
    repeatedMessages: journal.repeatedMessages,
    slowestRevocationMs: journal.slowestRevocationMs,
    drainedAfterMs,
  };
}

async function runRound(cluster: Cluster, load: Load, fault: PlannedFault): Promise<RoundResult> {
  const before = load.journal.acknowledged;
  await plantTriggers(cluster.platform, load.journal, TRIGGERS_PER_ROUND);
  load.traffic.phase = fault.kind;
  let proof: string | null = null;
  try {
    proof = await injectFault({ cluster, load }, fault);
  } catch (error) {
    load.journal.violations.push(`round ${fault.round}, ${describeFault(fault)}: ${String(error)}`);
  }
  const healedAtMs = performance.now();
  await untilHealthy(cluster, load, fault);
  const recoveredAfterMs = performance.now() - healedAtMs;
  load.traffic.phase = `after ${fault.kind}`;
  await delay(BETWEEN_ROUNDS_MS);
  return { fault, proof, recoveredAfterMs, acknowledged: load.journal.acknowledged - before };
}

/** Waits until every replica says that it is ready, and the balancers know. A replica that ended on its own is a finding. */
async function untilHealthy(cluster: Cluster, load: Load, fault: PlannedFault): Promise<void> {
  const deadline = performance.now() + RECOVERY_LIMIT_MS;
  for (;;) {
    const states = await Promise.all(cluster.replicas.map(({ program }) => program.isReady()));
    if (states.every(Boolean) && cluster.network.readyCount === cluster.replicas.length) return;
    for (const { label, program } of cluster.replicas) {
      if (!program.hasEnded()) continue;
      load.journal.violations.push(`${label} ended by itself during ${describeFault(fault)}`);
      await program.spawn();
    }
    if (performance.now() > deadline) {
      const unready = cluster.replicas
        .filter((_, index) => states[index] === false)
        .map(({ label }) => label);
      load.journal.violations.push(
        `not ready ${seconds(RECOVERY_LIMIT_MS)} after ${describeFault(fault)}: ${unready.join(', ')}`,
      );
      return;
    }
    await delay(100);
  }
}

/** Ends the fires and waits until nothing is on its way: no due trigger, no outbox row, no message. Gives how long that took. */
async function drain(platform: TestPlatform): Promise<number> {
  const startedAtMs = performance.now();
  await untilNothingIsDue(platform);
  await pauseTriggers(platform);
  let quiet = 0;
  // The broker's counts are seconds old: several times in a row, then.
  while (quiet < 4 && performance.now() - startedAtMs < DRAIN_LIMIT_MS) {
    const queues = await readQueues(platform);
    const isQuiet =
      (await readOutbox(platform)) === 0 &&
      queues.every(({ name, messages }) => messages === 0 || /_(error|skipped)$/.test(name));
    quiet = isQuiet ? quiet + 1 : 0;
    await delay(1_500);
  }
  return performance.now() - startedAtMs;
}

async function untilNothingIsDue(platform: TestPlatform): Promise<void> {
  const deadline = performance.now() + RECOVERY_LIMIT_MS;
  for (;;) {
    const [row] = await platform.query<{ due: number }>(
      'task',
      `SELECT count(*)::int AS due FROM task.triggers WHERE state = 'WAITING' AND next_fire_at <= now()`,
    );
    if (row?.due === 0 || performance.now() > deadline) return;
    await delay(200);
  }
}

function describeRound(
  { fault, proof, recoveredAfterMs, acknowledged }: RoundResult,
  rounds: number,
): string {
  const mark = proof === null ? '✘' : '✔';
  const number = String(fault.round).padStart(String(rounds).length);
  const what = `${describeFault(fault)}: ${proof ?? 'not injected'}`;
  return `${mark} ${number}/${rounds} ${what}; ready after ${seconds(recoveredAfterMs)}, ${acknowledged} acknowledged`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
