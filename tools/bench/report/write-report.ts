import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { format } from 'prettier';
import { WORKSPACE } from '#platform/laboratory.ts';
import { barChart } from './chart.ts';
import { markdownReport } from './markdown.ts';
import type { BenchmarkResult, RunResults } from './results.ts';

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
