/** `npm run bench`: measures the platform side by side with peers and bare limits, and writes docs/benchmarks.md. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { FriendlyError } from '#platform/friendly-error.ts';
import { ArgumentsError, parseBenchArguments, USAGE, type BenchArguments } from './arguments.ts';
import { BENCHMARKS } from './catalogue.ts';
import type { Benchmark } from './benchmark.ts';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { Laboratory, WORKSPACE } from '#platform/laboratory.ts';
import { goalText } from './report/markdown.ts';
import type { BenchmarkResult } from './report/results.ts';
import { describeRun, writeReport } from './report/write-report.ts';
import { runContest } from './run-contest.ts';

const IDS = BENCHMARKS.map(({ id }) => id);

async function main(): Promise<void> {
  const args = parseBenchArguments(process.argv.slice(2), IDS);
  if (args.help || args.list) {
    console.log(
      args.help ? USAGE : BENCHMARKS.map(({ id, title }) => `${id.padEnd(20)} ${title}`).join('\n'),
    );
    return;
  }
  const nodeOptions = args.profile === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${args.profile}`];
  const laboratory = await Laboratory.open(
    { nodeOptions, projectRoots: [...PROJECT_ROOTS, 'tools/bench/programs'] },
    (line) => console.log(`▸ ${line}`),
  );
  const stop = (): void => void laboratory.close().then(() => process.exit(130));
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  try {
    await runAll(laboratory, args);
  } finally {
    await laboratory.close();
  }
}

async function runAll(laboratory: Laboratory, args: BenchArguments): Promise<void> {
  const chosen = BENCHMARKS.filter(({ id }) => args.ids.length === 0 || args.ids.includes(id));
  const results: BenchmarkResult[] = [];
  const versions = await serverVersions(laboratory);
  for (const [index, benchmark] of chosen.entries()) {
    console.log(`\n${index + 1}/${chosen.length} ${benchmark.id}: ${benchmark.title}`);
    if (benchmark.standsAlone) await laboratory.close();
    results.push(await runOne(laboratory, benchmark, args));
  }
  const run = describeRun(results, versions);
  const raw = join(WORKSPACE, 'test-results');
  mkdirSync(raw, { recursive: true });
  writeFileSync(join(raw, 'bench.json'), JSON.stringify(run, null, 2));
  if (args.write) await writeReport(run);
  console.log(args.write ? '\ndocs/benchmarks.md is written.' : '\nRaw results: test-results/bench.json');
}

async function runOne(
  laboratory: Laboratory,
  benchmark: Benchmark,
  args: BenchArguments,
): Promise<BenchmarkResult> {
  const contest = await benchmark.prepare(laboratory);
  try {
    const result = await runContest(contest, args, (line) => console.log(`  ${line}`));
    for (const comparison of result.comparisons) {
      const { title, ratio, met } = comparison;
      const range = `${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)}`;
      console.log(
        `  ${met ? '✔' : '✘'} ${title}: ${ratio.median.toFixed(2)}× (${range}), goal ${goalText(comparison)}`,
      );
    }
    return { id: benchmark.id, title: benchmark.title, result };
  } finally {
    await contest.close();
  }
}

async function serverVersions({ databaseUrl, managementUrl }: Laboratory): Promise<Record<string, string>> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
  await client.end();
  const { username, password, origin } = new URL(managementUrl);
  const authorization = `Basic ${Buffer.from(`${username}:${decodeURIComponent(password)}`).toString('base64')}`;
  const response = await fetch(`${origin}/api/overview`, { headers: { authorization } });
  const { rabbitmq_version: rabbitmq } = (await response.json()) as { rabbitmq_version: string };
  return { PostgreSQL: rows[0]!.server_version, RabbitMQ: rabbitmq };
}

main().catch((error: unknown) => {
  if (error instanceof FriendlyError || error instanceof ArgumentsError) console.error(`✘ ${error.message}`);
  else console.error(error);
  process.exit(error instanceof ArgumentsError ? 2 : 1);
});
