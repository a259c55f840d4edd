/** `npm run leak`: an hour's traffic in a few minutes; what the services hold must level off. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { commandLine, runMain, wholeNumber } from '#platform/command-line.ts';
import { makeTemporaryFolder } from '#platform/private-servers.ts';
import { SERVICE_NAMES } from '#platform/programs.ts';
import { Random } from '#platform/random.ts';
import { findRunAs } from '#platform/run-as.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { programOf, testPlatform } from '../platform.ts';
import { judgeSeries, Sampler, type Verdict } from './growth.ts';
import { Caller, runErrand } from './traffic.ts';

const DESCRIPTION = `Sends the built platform ordinary traffic as fast as it goes: settings, tokens and refresh chains, revocations, schedules,
completions, messages on both buses, mistakes, new connections. In between it samples what each service holds, with nothing in flight and
garbage collected; a line through the second half may hardly rise. Ends with 1 when something grows.`;

const CONCURRENCY = 12;
const REMEMBERED_TOKENS = 5_000;
/** For work that continues after a response: messages, idle connections of the pools. */
const SETTLE_MS = 1_500;

async function main(): Promise<void> {
  const { build, ...plan } = commandLine('npm run leak', '[options]', DESCRIPTION)
    .option('--requests <n>', 'how many; the default is ten a second for an hour', wholeNumber, 36_000)
    .option('--samples <n>', 'in how many rounds, with a sample after each', wholeNumber, 24)
    .option('--seed <n>', 'the same seed sends the same', wholeNumber, 1)
    .option('--no-build', 'test what was built before')
    .parse()
    .opts<Plan & { build: boolean }>();
  const probeFolder = makeTemporaryFolder(findRunAs());
  const variables = { LEAK_PROBE_FOLDER: probeFolder, LOG_LEVEL: 'warn' };
  const nodeOptions = ['--expose-gc', '--require', join(import.meta.dirname, 'probe.cjs')];
  await testPlatform({ build, nodeOptions, variables }, (platform, { databaseUrl, managementUrl }) => {
    const pids = Object.fromEntries(SERVICE_NAMES.map((name) => [name, programOf(platform, name).pid]));
    return run(platform, new Sampler({ pids, probeFolder, databaseUrl, managementUrl }), plan);
  });
}

interface Plan {
  readonly requests: number;
  readonly samples: number;
  readonly seed: number;
}

/** True when everything levels off. */
async function run(platform: TestPlatform, sampler: Sampler, plan: Plan): Promise<boolean> {
  const caller = new Caller(platform);
  console.log('▸ filling what is bounded: each service remembers the last 5,000 tokens it verified');
  await fill(caller);
  const [filled, startedAtMs] = [caller.sent, performance.now()];
  for (let round = 1; round <= plan.samples; round += 1) {
    await sendRound(caller, filled + (plan.requests / plan.samples) * round, plan.seed, round);
    await caller.closeIdle();
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    await sampler.take();
    const heaps = sampler.series.filter(({ name }) => name.endsWith('heap'));
    const text = heaps.map(({ name, values }) => `${name} ${values.at(-1)?.toFixed(0) ?? ''} MB`).join(', ');
    console.log(`  ${round}/${plan.samples}  ${caller.sent - filled} sent; ${text}`);
  }
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const verdicts = sampler.series.map(judgeSeries);
  console.log(`\n${table(verdicts)}\n`);
  const statuses = [...caller.statuses].sort().map(([status, count]) => `${status} × ${count}`);
  console.log(
    `${caller.sent - filled} requests over ${caller.connectionsOpened} connections in ${seconds.toFixed(0)} s: ${statuses.join('  ')}`,
  );
  write({ plan, seconds, series: sampler.series, verdicts });
  const growing = verdicts.filter(({ levelsOff }) => !levelsOff);
  console.log(
    growing.length === 0
      ? '✔ everything levels off'
      : `✘ growing: ${growing.map(({ name }) => name).join(', ')}`,
  );
  return growing.length === 0;
}

/** Every request of this traffic has a token of its own, while a caller uses one for a day: the cache of verified tokens would fill
 *  throughout the run and hide what leaks. */
async function fill(caller: Caller): Promise<void> {
  const numbers = Array.from({ length: REMEMBERED_TOKENS }, (_none, index) => index).values();
  const work = async (): Promise<void> => {
    for (const number of numbers) {
      await caller.send('auth', 'GET', `/auth/revocations/jti/none-${number}`);
      await caller.send('settings', 'GET', '/platform/v1/subsystems/none/settings/none');
      await caller.send('task', 'GET', '/Triggers?pageSize=1');
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

async function sendRound(caller: Caller, until: number, seed: number, round: number): Promise<void> {
  const work = async (worker: number): Promise<void> => {
    const random = Random.ofStream(seed, round * 1_000 + worker);
    while (caller.sent < until) await runErrand(caller, random);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, (_none, worker) => work(worker)));
}

function table(verdicts: readonly Verdict[]): string {
  const columns = ['first', 'middle', 'last', 'highest', 'growth', 'allowed'] as const;
  const head = `  ${'what'.padEnd(32)}${columns.map((column) => column.padStart(9)).join('')}`;
  const rows = verdicts.map((verdict) => {
    const digits = verdict.unit === 'MB' ? 1 : 0;
    const figures = columns.map((column) => verdict[column].toFixed(digits).padStart(9)).join('');
    const name = verdict.unit === '' ? verdict.name : `${verdict.name}, ${verdict.unit}`;
    return `${verdict.levelsOff ? '✔' : '✘'} ${name.padEnd(32)}${figures}`;
  });
  return [head, ...rows].join('\n');
}

function write(figures: object): void {
  const file = join(WORKSPACE, 'test-results/leak.json');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(figures, null, 2));
  console.log('All samples: test-results/leak.json');
}

runMain(main);
