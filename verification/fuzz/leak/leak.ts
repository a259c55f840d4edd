import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { textTable } from '#platform/command-line.ts';
import { makeTemporaryFolder } from '#platform/private-servers.ts';
import { SERVICE_NAMES } from '#platform/programs.ts';
import { findRunAs } from '#platform/run-as.ts';
import { PrivateServers, type TestPlatform } from '#platform/test-platform.ts';
import { type Check, CheckBuilder } from '#verification/audit/check.ts';
import { auditLoggedDefects } from '#verification/audit/responses-and-logs.ts';
import type { Report, Result, Scenario, ScenarioContext, Stage } from '#verification/scenarios/scenario.ts';
import { programOf } from '../platform.ts';
import { Callers } from './callers.ts';
import { judgeSeries, Sampler, type Series, type Verdict } from './growth.ts';

/**
 * Wait before each sample, for work that continues after a response: messages, idle connections of the pools.
 */
const SETTLE_MS = 1_500;

/** The command line of `npm run leak`. */
export interface LeakPlan {
  readonly requests: number;
  readonly samples: number;
  readonly seed: number;
  /** False: tests the existing build. */
  readonly build: boolean;
}

/** A platform whose services have a memory probe. */
interface Probed extends Stage {
  readonly platform: TestPlatform;
  readonly servers: PrivateServers;
  readonly probeFolder: string;
}

interface Measured {
  readonly series: readonly Series[];
  readonly sent: number;
  readonly seconds: number;
}

/** Sends ordinary traffic for minutes. The memory and other resources of the services must level off. */
export function leak(plan: LeakPlan): Scenario<Probed, Callers, Measured> {
  const { requests, samples, seed } = plan;
  return {
    command: `npm run leak -- --requests ${requests} --samples ${samples} --seed ${seed}`,
    resultFile: 'leak.json',
    open: (report) => open(plan, report),
    load: start,
    steps: (context) => sendRounds(context, plan),
    // Each round ends with no request in flight.
    drain: () => Promise.resolve(),
    audit: ({ stage, load }, measured) => Promise.resolve(audit(plan, stage, load, measured)),
  };
}

async function open({ build }: LeakPlan, report: Report): Promise<Probed> {
  const nodeOptions = ['--expose-gc', '--require', join(import.meta.dirname, 'probe.cjs')];
  const builds = build ? {} : { projectRoots: [] };
  const servers = await PrivateServers.open({ nodeOptions, ...builds }, report);
  const probeFolder = makeTemporaryFolder(findRunAs());
  const stop = async (): Promise<void> => {
    await servers.close();
    rmSync(probeFolder, { recursive: true, force: true });
  };
  return { platform: await servers.createPlatform(), servers, probeFolder, stop };
}

async function start({ platform, probeFolder }: Probed, report: Report): Promise<Callers> {
  const variables = { LEAK_PROBE_FOLDER: probeFolder, LOG_LEVEL: 'warn' };
  await platform.startEverything(Object.fromEntries(SERVICE_NAMES.map((name) => [name, variables])));
  const callers = new Callers(platform);
  report('filling caches: each service caches the last 5,000 tokens that it verified');
  await callers.fill();
  return callers;
}

async function sendRounds(
  { stage, load: callers, report }: ScenarioContext<Probed, Callers>,
  { requests, samples, seed }: LeakPlan,
): Promise<Measured> {
  const { platform, servers, probeFolder } = stage;
  const { databaseUrl, managementUrl } = servers;
  const pids = Object.fromEntries(SERVICE_NAMES.map((name) => [name, programOf(platform, name).pid]));
  const sampler = new Sampler({ pids, probeFolder, databaseUrl, managementUrl });
  const [filled, startedAtMs] = [callers.sent, performance.now()];
  for (let round = 1; round <= samples; round += 1) {
    await callers.sendRound(filled + (requests / samples) * round, seed, round);
    await delay(SETTLE_MS);
    await sampler.take();
    const heaps = sampler.series.filter(({ name }) => name.endsWith('heap'));
    const text = heaps.map(({ name, values }) => `${name} ${values.at(-1)?.toFixed(0) ?? ''} MB`).join(', ');
    report(`${round}/${samples}  ${callers.sent - filled} sent; ${text}`);
  }
  const seconds = (performance.now() - startedAtMs) / 1_000;
  return { series: sampler.series, sent: callers.sent - filled, seconds };
}

function audit(
  plan: LeakPlan,
  { platform }: Probed,
  callers: Callers,
  { series, sent, seconds }: Measured,
): Result {
  const verdicts = series.map(judgeSeries);
  return {
    checks: [auditGrowth(verdicts, plan.samples), auditLoggedDefects(platform.logs())],
    blocks: [
      growthTable(verdicts),
      [
        `${sent} requests over ${callers.traffic.connections} connections in ${seconds.toFixed(0)} s: ${callers.statuses()}`,
      ],
    ],
    success: 'everything levels off',
    figures: { plan, seconds, series, verdicts },
  };
}

/** @param samples number of samples of each series */
function auditGrowth(verdicts: readonly Verdict[], samples: number): Check {
  const check = new CheckBuilder('resources of the services: level off');
  for (const verdict of verdicts) {
    const { name, unit, growth, allowed, levelsOff } = verdict;
    if (!levelsOff)
      check.wrong(`${name} grew by ${figure(unit, growth)}, at most ${figure(unit, allowed)} is allowed`);
  }
  return check.done(verdicts.length, verdicts.length * samples);
}

function growthTable(verdicts: readonly Verdict[]): string[] {
  const columns = ['first', 'middle', 'last', 'highest', 'growth', 'allowed'] as const;
  const rows = verdicts.map((verdict) => [
    verdict.name,
    ...columns.map((column) => figure(verdict.unit, verdict[column])),
  ]);
  return textTable(['what', ...columns], rows);
}

/** E.g. `12.3 MB`. */
function figure(unit: string, value: number): string {
  return unit === '' ? value.toFixed(0) : `${value.toFixed(1)} ${unit}`;
}
