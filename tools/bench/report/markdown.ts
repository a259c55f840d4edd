import type { ProcessorTime } from '../processor-time.ts';
import type { ComparisonResult } from '../run-contest.ts';
import { formatFigure } from '../run-contest.ts';
import type { BenchmarkResult, RunResults } from './results.ts';

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
