import { setTimeout as delay } from 'node:timers/promises';
import type { TestPlatform } from '#platform/test-platform.ts';
import { auditRun } from './audit/audit.ts';
import { countRows, gatherFacts, readQueues, watchApplications } from './audit/gather.ts';
import { auditLoggedDefects, auditLogs, auditTokens, auditTraffic } from './audit/replicas.ts';
import type { Cluster } from './cluster.ts';
import { injectFault } from './faults.ts';
import type { Journal } from './load/journal.ts';
import { Load } from './load/load.ts';
import { pauseTriggers, plantTriggers } from './load/tasks.ts';
import { describeFault, type PlannedFault, seconds } from './plan.ts';
import { Prometheus } from './prometheus.ts';
import { copyPublishedMessages } from './published-messages.ts';

export interface RunOptions {
  readonly seed: number;
  readonly plan: readonly PlannedFault[];
  /** What, with the seed, gives the same run again. */
  readonly flags: string;
  /** Has one watch; a folder: and its dashboards drawn there. */
  readonly prometheus: boolean | string;
  readonly report: (line: string) => void;
}

export type RoundResult = Awaited<ReturnType<typeof runRound>>;
export type RunResult = Awaited<ReturnType<typeof runChaos>>;

const WARM_UP_MS = 2_000;
const BETWEEN_ROUNDS_MS = 1_500;
const TRIGGERS_PER_ROUND = 12;
const RECOVERY_LIMIT_MS = 60_000;
/** Business-unit changes come back after up to 5 min when the database is away each time. */
const DRAIN_LIMIT_MS = 360_000;

/** Brings a platform up, breaks it round after round under load, and audits what is left. The platform is gone afterwards. */
export async function runChaos(cluster: Cluster, options: RunOptions) {
  const { report, seed, flags } = options;
  await cluster.start(report);
  const { platform } = cluster;
  const prometheus = options.prometheus !== false ? await Prometheus.start(cluster) : null;
  await watchApplications(platform, cluster.isUpgrade ? 'business_unit_changes' : 'business_unit_facilities');
  await copyPublishedMessages(platform);
  const load = await Load.prepare(platform, seed);
  load.traffic.isStrict = cluster.isUpgrade;
  load.start(platform);
  if (!cluster.isUpgrade) load.startLives();
  await delay(WARM_UP_MS);
  const rounds: RoundResult[] = [];
  for (const fault of options.plan) {
    const round = await runRound(cluster, load, fault);
    rounds.push(round);
    report(describeRound(round, options.plan.length));
  }
  await load.finish();
  const drainedAfterMs = await drain(platform);
  report(`load ended, drained after ${seconds(drainedAfterMs)}`);
  const checks = await auditAll(cluster, load, rounds);
  const isKilled = rounds.some(({ fault }) => fault.kind === 'kill-replica');
  if (prometheus !== null) checks.push(await prometheus.audit(isKilled ? ['ReplicaDown'] : []));
  if (typeof options.prometheus === 'string') await prometheus?.draw(options.prometheus);
  const { attempts, lostResponses, outcomes, longestMs } = load.traffic;
  const { repeatedMessages, slowestRevocationMs } = load.journal;
  return {
    ...{ seed, flags, rounds, checks, attempts, lostResponses, repeatedMessages, slowestRevocationMs },
    drainedAfterMs,
    outcomes: Object.fromEntries(outcomes),
    longestMs: Object.fromEntries(longestMs),
  };
}

async function auditAll(cluster: Cluster, { journal, traffic }: Load, rounds: readonly RoundResult[]) {
  return [
    ...auditRun(journal, await gatherFacts(cluster.platform), cluster.isUpgrade),
    await auditTokens(cluster, journal),
    auditLogs(cluster, journal),
    // Release 1.0.0 logs errors of its own: its purges lack rights.
    ...(cluster.isUpgrade ? [] : [auditLoggedDefects(cluster.platform.logs())]),
    auditTraffic(traffic, rounds),
  ];
}

async function runRound(cluster: Cluster, load: Load, fault: PlannedFault) {
  const { journal, traffic } = load;
  const before = journal.acknowledged;
  await plantTriggers(cluster.platform, journal, TRIGGERS_PER_ROUND);
  traffic.phase = fault.kind;
  traffic.watchPauses();
  // What was seen of the fault from outside; null: it could not be injected.
  const proof = await injectFault({ cluster, load, fault }).catch((error: unknown) => {
    journal.violations.push(`round ${fault.round}, ${describeFault(fault)}: ${String(error)}`);
    return null;
  });
  const healedAtMs = performance.now();
  await untilHealthy(cluster, journal, fault);
  const recoveredAfterMs = performance.now() - healedAtMs;
  traffic.phase = `after ${fault.kind}`;
  if (cluster.isClustered)
    await cluster.engines.untilWhole().catch((error: unknown) => {
      journal.violations.push(`round ${fault.round}, after ${describeFault(fault)}: ${String(error)}`);
    });
  await delay(BETWEEN_ROUNDS_MS);
  const pausesMs = traffic.pausesMs();
  return { fault, proof, recoveredAfterMs, pausesMs, acknowledged: journal.acknowledged - before };
}

/** Waits until every replica says that it is ready, and the balancers know. A replica that ended by itself is a finding. */
async function untilHealthy(cluster: Cluster, journal: Journal, fault: PlannedFault): Promise<void> {
  const { replicas } = cluster;
  let unready: string[] = [];
  const isHealthy = await until(100, RECOVERY_LIMIT_MS, async () => {
    const states = await Promise.all(replicas.map(({ program }) => program.isReady()));
    unready = replicas.filter((_, index) => states[index] === false).map(({ label }) => label);
    for (const { label, program } of replicas) {
      if (!program.hasEnded()) continue;
      journal.violations.push(`${label} ended by itself during ${describeFault(fault)}`);
      await program.spawn();
    }
    return unready.length === 0 && cluster.isBalanced();
  });
  if (isHealthy) return;
  const after = `${seconds(RECOVERY_LIMIT_MS)} after ${describeFault(fault)}`;
  journal.violations.push(`not ready ${after}: ${unready.join(', ')}`);
}

/** Ends the fires and waits until nothing is on its way: no due trigger, no outbox row, no message. Returns how long that took. */
export async function drain(platform: TestPlatform): Promise<number> {
  const startedAtMs = performance.now();
  const isDue = `WHERE state = 'WAITING' AND next_fire_at <= now()`;
  await until(200, RECOVERY_LIMIT_MS, async () => (await countRows(platform, 'triggers', isDue)) === 0);
  await pauseTriggers(platform);
  let quiet = 0;
  // The broker's counts are seconds old, so they have to be zero several times in a row.
  await until(1_500, DRAIN_LIMIT_MS, async () => {
    const queues = await readQueues(platform);
    const isQuiet =
      (await countRows(platform, 'outbox')) === 0 &&
      queues.every(({ name, messages }) => messages === 0 || /_(error|skipped)$/.test(name));
    quiet = isQuiet ? quiet + 1 : 0;
    return quiet === 4;
  });
  return performance.now() - startedAtMs;
}

/** Repeats `probe` until it is true, or the limit has passed: then false. */
async function until(intervalMs: number, limitMs: number, probe: () => Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (!(await probe())) {
    if (performance.now() > deadline) return false;
    await delay(intervalMs);
  }
  return true;
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
