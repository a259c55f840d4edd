import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Variables } from '#platform/state-folder.ts';
import { auditRun } from '#verification/audit/audit.ts';
import type { Check } from '#verification/audit/check.ts';
import { auditRevocationFeed, auditSettingsFeed } from '#verification/audit/feeds.ts';
import { type Facts, gatherFacts } from '#verification/audit/gather.ts';
import {
  auditLoggedDefects,
  auditLogs,
  auditTokens,
  auditTraffic,
} from '#verification/audit/responses-and-logs.ts';
import { RETENTION_VARIABLES } from '#verification/oracle/retention/task-rows.ts';
import type { Journal } from '#verification/traffic/journal.ts';
import type { Load } from '#verification/traffic/load.ts';
import { copyPublishedMessages } from '#verification/traffic/published-messages.ts';
import { drain } from '../drain.ts';
import { seconds } from '../report.ts';
import type { Result, Scenario } from '../scenario.ts';
import type { Callers } from './callers.ts';
import { Testbed, type TestbedOptions } from './testbed.ts';
import type { Followers } from './followers.ts';
import { describeFault, type PlannedFault } from './plan.ts';
import { Prometheus } from './prometheus.ts';
import { roundTables } from './round-tables.ts';
import { type RoundResult, runRounds } from './run.ts';

const WARM_UP_MS = 2_000;

/** The parts in which scenarios of rounds differ. */
export interface InRounds {
  readonly seed: number;
  /** The flags that, with the seed, repeat the run. */
  readonly flags: string;
  readonly servers: Omit<TestbedOptions, 'variables'>;
  /** Starts the callers. */
  readonly startCallers: (testbed: Testbed, seed: number) => Promise<Callers>;
  readonly plan: readonly PlannedFault[];
  /** True: a Prometheus scrapes the run. A folder: the dashboards are also drawn there. */
  readonly prometheus: boolean | string;
}

/** The callers, and the Prometheus if there is one. */
interface Watched extends Callers {
  readonly prometheus: Prometheus | null;
}

export type RoundScenario = Scenario<Testbed, Watched, readonly RoundResult[]>;

/** The common part of chaos, cluster and upgrade: rounds under a continuous load, then a full audit. */
export function inRounds(options: InRounds): RoundScenario {
  const { seed, flags, servers, plan } = options;
  const file = `${basename(servers.dist)}-seed-${seed}-rounds-${plan.length}.json`;
  return {
    command: `npm run chaos -- --seed ${seed} ${flags}`,
    resultFile: `chaos/${file}`,
    open: (report) => Testbed.open({ ...servers, variables: variablesFor(plan) }, report),
    load: async (testbed, report) => {
      await testbed.start(report);
      const prometheus = options.prometheus === false ? null : await Prometheus.start(testbed);
      await copyPublishedMessages(testbed.platform);
      const callers = await options.startCallers(testbed, seed);
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

/** Variables of the replicas. For `expired-rows` they make purges frequent enough for the run. */
function variablesFor(plan: readonly PlannedFault[]): Variables {
  return plan.some(({ kind }) => kind === 'expired-rows') ? RETENTION_VARIABLES : {};
}

async function auditAll(
  testbed: Testbed,
  { load: { journal, traffic, zones }, followers }: Callers,
  rounds: readonly RoundResult[],
): Promise<Check[]> {
  const replicas = testbed.replicas.map(({ name, label, program }) => ({
    service: name.service,
    label,
    url: program.url,
    log: () => program.log(),
  }));
  const configured = new Map([...testbed.place.secrets.entries(), ...testbed.platform.secrets.entries()]);
  const faults = rounds.map(({ fault: { round, kind }, proof }) => ({ round, kind, proof }));
  // Check the replicas first: the audits below block this process, in which the TCP proxies run.
  const tokens = await auditTokens(replicas, journal);
  const facts = await gatherFacts(testbed.platform);
  return [
    ...auditRun(journal, facts, { zones, isUpgrade: testbed.isUpgrade }),
    ...(followers === null ? [] : auditFeeds(followers, journal, facts)),
    tokens,
    auditLogs(replicas, configured, journal),
    // In an upgrade only logs of the present build count: older releases log known errors, e.g. the purges of
    // 1.0.0 lack privileges.
    auditLoggedDefects(testbed.isUpgrade ? testbed.presentLogs() : testbed.platform.logs()),
    auditTraffic(traffic, faults, testbed.platform.logs()),
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

/** @param drawn folder in which dashboards are drawn, if it is a string */
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
    `${attempts} requests, ${lostResponses} responses discarded by their callers, ${repeatedMessages} messages published twice; ` +
    `a revoked token was accepted for at most ${seconds(slowestRevocationMs)}`;
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
