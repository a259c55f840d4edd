import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';
import { MUTANTS } from './catalogue.ts';
import type { Mutant } from './mutant.ts';
import type { MutantResult } from './run.ts';
import { describeScenario } from './scenario.ts';

const FILE = join(WORKSPACE, 'test-results/chaos/mutants.json');
const DOCUMENT = join(WORKSPACE, 'docs/reliability.md');
const [BEGIN, END] = ['<!-- mutants: written by npm run verify:mutants -- --write -->', '<!-- /mutants -->'];

/** Keeps results for the table, besides those of other mistakes. */
export function keepResults(results: readonly MutantResult[]): void {
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(FILE, `${JSON.stringify(withResults(readResults(), results), null, 2)}\n`);
}

/** What was noticed alone is kept when it is noticed again beside others, which shows less. */
export function withResults(kept: readonly MutantResult[], results: readonly MutantResult[]): MutantResult[] {
  const byName = new Map(kept.map((result) => [result.name, result]));
  for (const result of results) {
    const known = byName.get(result.name);
    const wasNoticed = known !== undefined && known.finding !== null;
    const showsLess = result.finding !== null && wasNoticed && known.others < result.others;
    if (!showsLess) byName.set(result.name, result);
  }
  return [...byName.values()];
}

/** Writes the results of all into the documentation. @throws {Error} when it has no place for them */
export function writeTable(): void {
  const results = readResults();
  const table = mutantTable(MUTANTS, results);
  writeFileSync(DOCUMENT, withTable(readFileSync(DOCUMENT, 'utf8'), table));
}

/** @throws {Error} without the two markers */
export function withTable(document: string, table: readonly string[]): string {
  const [before, rest] = document.split(BEGIN);
  const [, after] = rest?.split(END) ?? [];
  if (before === undefined || after === undefined) throw new Error('the document has no place for the table');
  return `${before}${[BEGIN, '', ...table, '', END].join('\n')}${after}`;
}

/** The lines of a Markdown table. */
export function mutantTable(
  mutants: readonly Pick<Mutant, 'name' | 'says' | 'claim' | 'scenario'>[],
  results: readonly MutantResult[],
): string[] {
  const byName = new Map(results.map((result) => [result.name, result]));
  const rows = mutants.map(({ name, says, claim, scenario }) => {
    const result = byName.get(name);
    const catcher = result === undefined ? 'not run' : catcherOf(result);
    const run = describeScenario(scenario, (kind) => `\`${kind}\``);
    return `| ${[claim, says, run, catcher, took(result)].join(' | ')} |`;
  });
  return [
    '| promise | mistake | run | noticed by | seconds |',
    '| ------- | ------- | --- | ---------- | ------- |',
    ...rows,
  ];
}

/** The seconds of a run of its own; of a run that it shared, with how many. */
function took(result: MutantResult | undefined): string {
  if (result === undefined) return '';
  return result.others === 0 ? String(result.seconds) : `beside ${result.others}`;
}

/** The check that found it. */
function catcherOf({ finding }: MutantResult): string {
  if (finding === null) return '**nobody**';
  return /^✘ (.*?): /.exec(finding)?.[1] ?? finding;
}

function readResults(): MutantResult[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as MutantResult[]) : [];
}
