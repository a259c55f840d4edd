import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { format } from 'prettier';
import { WORKSPACE } from '#platform/state-folder.ts';
import { barChart } from './chart.ts';
import { type ComparisonResult, type ContestResult, formatFigure } from './contest.ts';
import type { ProcessorTime } from './processor-time.ts';

/** Everything of one run, as docs/benchmarks.json keeps it. */
export interface RunResults {
  readonly measuredAt: string;
  readonly commit: string;
  readonly command: string;
  readonly machine: Machine;
  readonly versions: Readonly<Record<string, string>>;
  readonly benchmarks: readonly BenchmarkResult[];
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly system: string;
}

export interface BenchmarkResult {
  readonly id: string;
  readonly title: string;
  readonly result: ContestResult;
}

const INTRODUCTION = `# Benchmarks

Written by \`npm run bench\`; do not edit. What limits a row that falls short stands in [performance.md](performance.md).

Absolute figures belong to the machine; the ratios are what counts. Each ratio is the median over alternating rounds of one run, with
the lowest and the highest round behind it. Every side works on the same durable PostgreSQL and the same RabbitMQ, on the same cores as
the load generator, and any unexpected answer ends the run. \`processors\` is how many of them the side kept busy, then the servers and the
load generator.`;

/** The page with the table of all goals and a section for each benchmark. */
export function markdownReport(run: RunResults): string {
  const { machine, versions } = run;
  const facts = [
    `Measured ${run.measuredAt} at commit ${run.commit} with \`${run.command}\` on ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}.`,
    Object.entries(versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(', ') + '.',
  ];
  return (
    [INTRODUCTION, facts.join('\n'), summaryTable(run.benchmarks), ...run.benchmarks.map(section)].join(
      '\n\n',
    ) + '\n'
  );
}

function summaryTable(benchmarks: readonly BenchmarkResult[]): string {
  const rows = benchmarks.flatMap(({ id, result }) =>
    result.comparisons.map((comparison) => {
      const verdict = comparison.met ? 'met' : '**not met**';
      return `| [${id}](#${id}) | ${comparison.title} | ${goalText(comparison)} | ${ratioText(comparison)} | ${verdict} |`;
    }),
  );
  return ['| benchmark | compared | goal | ratio | |', '| --- | --- | --- | --- | --- |', ...rows].join('\n');
}

function section({ id, title, result }: BenchmarkResult): string {
  const rows = result.contestants.map(
    ({ name, does, spread, processors }) =>
      `| ${name} | ${formatFigure(spread.median)} | ${formatFigure(spread.min)}–${formatFigure(spread.max)} | ${processorsText(processors)} | ${does} |`,
  );
  return [
    `## ${id}`,
    `${title}.`,
    `![${title}](benchmarks/${id}.svg)`,
    [
      `| side | ${result.unit} | rounds | processors | what it does |`,
      '| --- | --: | --: | --- | --- |',
      ...rows,
    ].join('\n'),
    result.conditions.map((condition) => `- ${condition}`).join('\n'),
  ].join('\n\n');
}

/** `0.82 + PostgreSQL 0.61 + load 0.52`; what is hardly used is left out. */
function processorsText(processors: ProcessorTime | null): string {
  if (processors === null) return '';
  const { program, postgresql, rabbitmq, load } = processors;
  const parts = [
    ['', program],
    ['PostgreSQL ', postgresql],
    ['RabbitMQ ', rabbitmq],
    ['load ', load],
  ] as const;
  return parts
    .filter(([, busy]) => busy >= 0.03)
    .map(([who, busy]) => who + busy.toFixed(2))
    .join(' + ');
}

/** `≥ 0.85×` */
export function goalText({ goal }: Pick<ComparisonResult, 'goal'>): string {
  return 'atLeast' in goal ? `≥ ${goal.atLeast}×` : `≤ ${goal.atMost}×`;
}

function ratioText({ ratio }: ComparisonResult): string {
  return `${ratio.median.toFixed(2)}× (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})`;
}

const DOCS = join(WORKSPACE, 'docs');

/** Describes this machine, the versions and the commit, around the results. */
export function describeRun(
  benchmarks: readonly BenchmarkResult[],
  servers: Readonly<Record<string, string>>,
): RunResults {
  const [cpu] = cpus();
  return {
    measuredAt: new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC',
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      cwd: WORKSPACE,
      encoding: 'utf8',
    }).trim(),
    command: ['npm run bench', ...process.argv.slice(2)].join(' '),
    machine: {
      cpu: cpu?.model.trim() ?? 'unknown',
      cores: cpus().length,
      memoryGib: Math.round(totalmem() / 2 ** 30),
      system: `${type()} ${release()}`,
    },
    versions: { Node: process.versions.node, ...servers, ...packageVersions() },
    benchmarks,
  };
}

function packageVersions(): Record<string, string> {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(WORKSPACE, 'package.json'), 'utf8'),
  ) as {
    dependencies: Record<string, string>;
    devDependencies: Record<string, string>;
  };
  return {
    NestJS: dependencies['@nestjs/core']!,
    pg: dependencies['pg']!,
    'oidc-provider': devDependencies['oidc-provider']!,
  };
}

/** Writes docs/benchmarks.md, its charts and the raw results. */
export async function writeReport(run: RunResults): Promise<void> {
  const charts = join(DOCS, 'benchmarks');
  mkdirSync(charts, { recursive: true });
  for (const { id, title, result } of run.benchmarks) {
    writeFileSync(join(charts, `${id}.svg`), barChart(title, result));
  }
  writeFileSync(
    join(charts, 'results.json'),
    await format(JSON.stringify(run), { parser: 'json', printWidth: 130 }),
  );
  writeFileSync(join(DOCS, 'benchmarks.md'), await format(markdownReport(run), { parser: 'markdown' }));
}
