/** `npm run bench`: measures the platform beside peers and bare limits, and writes docs/performance.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BrokerManagement } from '#platform/broker-management.ts';
import { onEndSignal, runMain, textTable } from '#platform/command-line.ts';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { PrivateServers } from '#platform/test-platform.ts';
import { type BenchArguments, parseBenchArguments } from './arguments.ts';
import { latency } from './benchmarks/latency.ts';
import { commitToConsumer, schedulePost } from './benchmarks/schedule-post.ts';
import { generation, outboxRelay, schedulerFire } from './benchmarks/scheduler.ts';
import { settingsBulkRead, settingsList, settingsRead, settingsWrite } from './benchmarks/settings.ts';
import { settingsClientRead, settingsWatchers, settingsWatchLatency } from './benchmarks/settings-feed.ts';
import { coldStart, coldStartMemory, firstRun } from './benchmarks/start.ts';
import { tokenPassword, tokenPasswordPing, tokenRefresh, tokenTrust } from './benchmarks/tokens.ts';
import {
  revocationCheck,
  revocationEffect,
  revocationMemory,
  tokenVerify,
} from './benchmarks/verification.ts';
import { type Benchmark, runContest } from './contest.ts';
import { type BenchmarkResult, describeRun, goalText, ratioText, writeReport } from './report.ts';

/** Every benchmark, in the order of the table. */
const BENCHMARKS: readonly Benchmark[] = [
  settingsRead,
  settingsWrite,
  settingsList,
  settingsBulkRead,
  settingsWatchLatency,
  settingsWatchers,
  settingsClientRead,
  tokenTrust,
  tokenRefresh,
  tokenPassword,
  tokenPasswordPing,
  tokenVerify,
  revocationCheck,
  revocationMemory,
  revocationEffect,
  schedulerFire,
  outboxRelay,
  schedulePost,
  generation,
  latency,
  commitToConsumer,
  coldStart,
  coldStartMemory,
  firstRun,
];
const IDS = BENCHMARKS.map(({ id }) => id);

async function main(): Promise<void> {
  const args = parseBenchArguments(process.argv.slice(2), IDS);
  if (args.list) {
    const rows = BENCHMARKS.map(({ id, title }) => [id, title]);
    console.log(textTable(['benchmark', 'what it measures'], rows).join('\n'));
    return;
  }
  const nodeOptions = args.profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${args.profile}`];
  const servers = await PrivateServers.open(
    { nodeOptions, projectRoots: [...PROJECT_ROOTS, 'verification/bench/programs'] },
    (line) => console.log(`▸ ${line}`),
  );
  onEndSignal(() => void servers.close().then(() => process.exit(130)));
  try {
    await runAll(servers, args);
  } finally {
    await servers.close();
  }
  process.exit();
}

async function runAll(servers: PrivateServers, args: BenchArguments): Promise<void> {
  const chosen = BENCHMARKS.filter(({ id }) => args.ids.length === 0 || args.ids.includes(id));
  const results: BenchmarkResult[] = [];
  const versions = await serverVersions(servers);
  const startedAtMs = performance.now();
  for (const [index, benchmark] of chosen.entries()) {
    const minutes = ((performance.now() - startedAtMs) / 60_000) * (chosen.length / index - 1);
    const left = index === 0 ? '' : ` (about ${Math.ceil(minutes)} min left)`;
    console.log(`\n${index + 1}/${chosen.length} ${benchmark.id}: ${benchmark.title}${left}`);
    if (benchmark.standsAlone) await servers.close();
    try {
      results.push(await runOne(servers, benchmark, args));
    } catch (error) {
      // The other benchmarks can still have results.
      console.error(`  ✘ ${benchmark.id} has no result: ${String(error)}`);
      process.exitCode = 1;
    }
  }
  const run = describeRun(results, versions);
  for (const side of run.slowSides) console.log(`\n⚠ slow machine: ${side}`);
  const raw = join(WORKSPACE, 'test-results');
  mkdirSync(raw, { recursive: true });
  writeFileSync(join(raw, 'bench.json'), JSON.stringify(run, null, 2));
  const isWritten = args.write && results.length === chosen.length;
  if (isWritten) await writeReport(run);
  console.log(isWritten ? '\ndocs/performance.md is written.' : '\nRaw results: test-results/bench.json');
}

async function runOne(
  servers: PrivateServers,
  benchmark: Benchmark,
  args: BenchArguments,
): Promise<BenchmarkResult> {
  const contest = await benchmark.prepare(servers);
  try {
    const result = await runContest(contest, args, (line) => console.log(`  ${line}`));
    for (const comparison of result.comparisons) {
      const mark = comparison.met ? '✔' : '✘';
      console.log(`  ${mark} ${comparison.title}: ${ratioText(comparison)}, goal ${goalText(comparison)}`);
    }
    return { id: benchmark.id, title: benchmark.title, result };
  } finally {
    await contest.close();
  }
}

async function serverVersions(servers: PrivateServers): Promise<Record<string, string>> {
  const { postgresql, managementUrl } = servers;
  const [row] = await postgresql.query<{ server_version: string }>('postgres', 'SHOW server_version');
  const broker = new BrokerManagement(managementUrl, '/');
  return { PostgreSQL: row!.server_version, RabbitMQ: await broker.version() };
}

runMain(main);
