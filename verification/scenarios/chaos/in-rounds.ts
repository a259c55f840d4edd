import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Variables } from '#platform/state-folder.ts';
import { auditRun } from '#verification/audit/audit.ts';
import type { Check } from '#verification/audit/check.ts';
import { auditRevocationFeed, auditSettingsFeed } from '#verification/audit/feeds.ts';
import { type Facts, gatherFacts } from '#verification/audit/gather.ts';
import { auditLoggedDefects, auditLogs, auditTokens, auditTraffic } from '#verification/audit/replicas.ts';
import { RETENTION_VARIABLES } from '#verification/oracle/retention/task-rows.ts';
import type { Journal } from '#verification/traffic/journal.ts';
import type { Load } from '#verification/traffic/load.ts';
import { copyPublishedMessages } from '#verification/traffic/published-messages.ts';
import { drain } from '../drain.ts';
import { seconds } from '../report.ts';
import type { Result, Scenario } from '../scenario.ts';
import type { Callers } from './callers.ts';
import { Cluster, type ClusterOptions } from './cluster.ts';
import type { Followers } from './followers.ts';
import { describeFault, type PlannedFault } from './plan.ts';
import { Prometheus } from './prometheus.ts';
import { roundTables } from './round-tables.ts';
import { type RoundResult, runRounds } from './run.ts';

const WARM_UP_MS = 2_000;

/** A scenario of rounds: what runs, who calls, and what is done to it. */
export interface InRounds {
  readonly seed: number;
  /** What, with the seed, gives the same run again. */
  readonly flags: string;
  readonly servers: Omit<ClusterOptions, 'variables'>;
  /** Has callers begin. */
  readonly startCallers: (cluster: Cluster, seed: number) => Promise<Callers>;
  readonly plan: readonly PlannedFault[];
  /** True: a Prometheus watches the run. A folder: its dashboards are also drawn there. */
  readonly prometheus: boolean | string;
}

/** Who calls, and what watches. */
interface Watched extends Callers {
  readonly prometheus: Prometheus | null;
}

export type RoundScenario = Scenario<Cluster, Watched, readonly RoundResult[]>;

/** What chaos, cluster and upgrade have in common: one round after the other under a load that goes on, and
 *  everything audited. */
export function inRounds(options: InRounds): RoundScenario {
  const { seed, flags, servers, plan } = options;
  const file = `${basename(servers.dist)}-seed-${seed}-rounds-${plan.length}.json`;
  return {
    command: `npm run chaos -- --seed ${seed} ${flags}`,
    resultFile: `chaos/${file}`,
    open: (report) => Cluster.open({ ...servers, variables: variablesFor(plan) }, report),
    load: async (cluster, report) => {
      await cluster.start(report);
      const prometheus = options.prometheus === false ? null : await Prometheus.start(cluster);
      await copyPublishedMessages(cluster.platform);
      const callers = await options.startCallers(cluster, seed);
      await delay(WARM_UP_MS);
      return { ...callers, prometheus };
    },
    steps: ({ stage, load, report }) => runRounds(stage, load.load, plan, report),
    drain: async ({ stage, load: { load, followers } }) => {
      await load.finish();
      await drain(stage.platform, load.journal);
      await followers
        ?.finish()
        .catch((error: unknown) =>
          load.journal.violations.push(`a reader of a feed ended: ${String(error)}`),
        );
    },
    audit: async ({ stage, load }, rounds) => ({
      checks: [
        ...(await auditAll(stage, load, rounds)),
        ...(await auditWatched(load.prometheus, rounds, options.prometheus)),
      ],
      ...shownOf(options, load.load, rounds),
    }),
  };
}

/** What replicas are told, so that what happens in them within hours happens within the run. */
function variablesFor(plan: readonly PlannedFault[]): Variables {
  return plan.some(({ kind }) => kind === 'expired-rows') ? RETENTION_VARIABLES : {};
}

async function auditAll(
  cluster: Cluster,
  { load: { journal, traffic, zones }, followers }: Callers,
  rounds: readonly RoundResult[],
): Promise<Check[]> {
  const replicas = cluster.replicas.map(({ name, label, program }) => ({
    service: name.service,
    label,
    url: program.url,
    log: () => program.log(),
  }));
  const configured = new Map([...cluster.place.secrets.entries(), ...cluster.platform.secrets.entries()]);
  const faults = rounds.map(({ fault: { round, kind }, proof }) => ({ round, kind, proof }));
  // Ask the replicas first: the audits below block this process, and the TCP proxies run in it.
  const tokens = await auditTokens(replicas, journal);
  const facts = await gatherFacts(cluster.platform);
  return [
    ...auditRun(journal, facts, { zones, isUpgrade: cluster.isUpgrade }),
    ...(followers === null ? [] : auditFeeds(followers, journal, facts)),
    tokens,
    auditLogs(replicas, configured, journal),
    // Older releases log errors of their own: the purges of 1.0.0 lack rights.
    auditLoggedDefects(cluster.isUpgrade ? cluster.presentLogs() : cluster.platform.logs()),
    auditTraffic(traffic, faults, cluster.platform.logs()),
  ];
}

function auditFeeds(
  { changes, revocations }: Followers,
  { revokedTokens }: Journal,
  { history }: Facts,
): Check[] {
  const revoked = revokedTokens.map(({ jti }) => jti);
  return [auditSettingsFeed(changes, history), auditRevocationFeed(revoked, revocations)];
}

/** @param drawn a folder: dashboards are drawn there */
async function auditWatched(
  prometheus: Prometheus | null,
  rounds: readonly RoundResult[],
  drawn: boolean | string,
): Promise<Check[]> {
  if (prometheus === null) return [];
  const isKilled = rounds.some(({ fault }) => fault.kind === 'kill-replica');
  const check = await prometheus.audit(isKilled ? ['ReplicaDown'] : []);
  if (typeof drawn === 'string') await prometheus.draw(drawn);
  return [check];
}

function shownOf(
  { seed, flags }: InRounds,
  { journal, traffic }: Load,
  rounds: readonly RoundResult[],
): Omit<Result, 'checks'> {
  const { attempts, lostResponses, outcomes, longestMs } = traffic;
  const { repeatedMessages, slowestRevocationMs } = journal;
  const remark =
    `${attempts} requests, ${lostResponses} responses thrown away by their callers, ${repeatedMessages} messages published twice; ` +
    `a revoked token was accepted for ${seconds(slowestRevocationMs)} at most`;
  return {
    blocks: [...roundTables(rounds), [remark]],
    success: `seed ${seed}: nothing lost, nothing twice`,
    figures: {
      seed,
      flags,
      rounds: rounds.map((round) => ({ ...round, description: describeFault(round.fault) })),
      attempts,
      lostResponses,
      repeatedMessages,
      slowestRevocationMs,
      outcomes: Object.fromEntries(outcomes),
      longestMs: Object.fromEntries(longestMs),
    },
  };
}
