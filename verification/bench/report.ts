import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { WORKSPACE } from '#platform/state-folder.ts';
import { barChart } from './chart.ts';
import {
  type BestSeen,
  type ComparisonResult,
  compareWithBest,
  type ContestResult,
  formatFigure,
} from './contest.ts';

/** All results of one run, as saved in docs/benchmarks/results.json. */
type RunResults = ReturnType<typeof describeRun>;

export interface BenchmarkResult {
  readonly id: string;
  readonly title: string;
  readonly result: ContestResult;
}

const GIT_OPTIONS = { cwd: WORKSPACE, encoding: 'utf8' } as const;
const PAGE = join(WORKSPACE, 'docs/performance.md');
const CHARTS = join(WORKSPACE, 'docs/benchmarks');
const RAW = join(CHARTS, 'results.json');
const RESULTS_BEGIN = '<!-- benchmark results: written by npm run bench -->';
const RESULTS_END = '<!-- end of benchmark results -->';

/**
 * Renders the results as Markdown: the machine, one row for each comparison, and a description of each side.
 */
export function markdownResults({ machine, versions, ...run }: RunResults): string {
  const tools = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const rows = run.benchmarks.flatMap(({ id, result }) =>
    result.comparisons.map((comparison) => {
      const { title, met } = comparison;
      const goal = goalText(comparison);
      return `| [${id}](benchmarks/${id}.svg) | ${title} | ${goal} | ${ratioText(comparison)} | ${met ? 'met' : '**not met**'} |`;
    }),
  );
  const sides = run.benchmarks.map(
    ({ id, title, result }) => `- **${id}**, ${title}: ${sideTexts(result).join('; ')}.`,
  );
  return [
    ...run.slowSides.map(
      (side) => `**This machine was slow:** ${side}. A slow bare side makes ratios look better.`,
    ),
    `Measured ${run.measuredAt} at commit ${run.commit} with \`${run.command}\` on ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}. ${tools.join(', ')}.`,
    [
      '| benchmark | compared with | goal | ratio (lowest–highest round) | |',
      '| --- | --- | --- | --- | --- |',
      ...rows,
    ].join('\n'),
    'What each side did, and its median:',
    sides.join('\n'),
  ].join('\n\n');
}

/**
 * Describes each side with its median. Sides that do the same and whose names differ only after the first
 * comma share one text.
 */
function sideTexts({ contestants, unit }: ContestResult): string[] {
  const groups = new Map<string, ContestResult['contestants']>();
  for (const contestant of contestants) {
    const key = JSON.stringify([contestant.name.split(', ')[0], contestant.does]);
    groups.set(key, [...(groups.get(key) ?? []), contestant]);
  }
  const figureOf = ({ spread }: ContestResult['contestants'][number]): string =>
    `${formatFigure(spread.median)} ${unit}`;
  return [...groups.values()].map((sides) => {
    const first = sides[0]!;
    if (sides.length === 1) return `${first.name} ${figureOf(first)} (${first.does})`;
    const [start = ''] = first.name.split(', ');
    const figures = sides.map((side) => `${side.name.slice(start.length + 2)} ${figureOf(side)}`);
    return `${start} (${first.does}): ${figures.join(', ')}`;
  });
}

function bestSeenBefore(): BestSeen {
  if (!existsSync(RAW)) return {};
  const { bestSeen = {} } = JSON.parse(readFileSync(RAW, 'utf8')) as { bestSeen?: BestSeen };
  return bestSeen;
}

/** E.g. `≥ 0.85×`. */
export function goalText({ goal }: Pick<ComparisonResult, 'goal'>): string {
  return 'atLeast' in goal ? `≥ ${goal.atLeast}×` : `≤ ${goal.atMost}×`;
}

/** E.g. `0.91× (0.85–0.97)`. */
export function ratioText({ ratio }: Pick<ComparisonResult, 'ratio'>): string {
  return `${ratio.median.toFixed(2)}× (${ratio.min.toFixed(2)}–${ratio.max.toFixed(2)})`;
}

/** Adds this machine, the versions and the commit to the results. */
export function describeRun(
  benchmarks: readonly BenchmarkResult[],
  servers: Readonly<Record<string, string>>,
) {
  const [cpu] = cpus();
  return {
    measuredAt: new Date().toISOString().slice(0, 16).replace('T', ' ') + ' UTC',
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], GIT_OPTIONS).trim(),
    command: ['npm run bench', ...process.argv.slice(2)].join(' '),
    machine: {
      cpu: cpu?.model.trim() ?? 'unknown',
      cores: cpus().length,
      memoryGib: Math.round(totalmem() / 2 ** 30),
      system: `${type()} ${release()}`,
    },
    versions: { Node: process.versions.node, ...servers, ...packageVersions() },
    benchmarks,
    ...compareWithBest(benchmarks, bestSeenBefore()),
  };
}

function packageVersions(): Record<string, string> {
  const manifest = readFileSync(join(WORKSPACE, 'package.json'), 'utf8');
  const { dependencies, devDependencies } = JSON.parse(manifest) as Record<string, Record<string, string>>;
  return {
    NestJS: dependencies!['@nestjs/core']!,
    pg: dependencies!['pg']!,
    'oidc-provider': devDependencies!['oidc-provider']!,
  };
}

/** Writes the results into docs/performance.md, and the charts and raw results into docs/benchmarks/. */
export async function writeReport(run: RunResults): Promise<void> {
  mkdirSync(CHARTS, { recursive: true });
  for (const { id, title, result } of run.benchmarks) {
    writeFileSync(join(CHARTS, `${id}.svg`), barChart(title, result));
  }
  writeFileSync(RAW, await format(JSON.stringify(run), { ...(await resolveConfig(RAW)), parser: 'json' }));
  const page = readFileSync(PAGE, 'utf8');
  const begin = page.indexOf(RESULTS_BEGIN) + RESULTS_BEGIN.length;
  const written = `${page.slice(0, begin)}\n\n${markdownResults(run)}\n\n${page.slice(page.indexOf(RESULTS_END))}`;
  writeFileSync(PAGE, await format(written, { parser: 'markdown' }));
}
