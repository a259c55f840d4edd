import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';
import { MUTANTS } from './catalogue.ts';
import type { Mutant } from './mutant.ts';
import type { MutantResult } from './run.ts';
import { describeRounds } from './rounds.ts';

const FILE = join(WORKSPACE, 'test-results/chaos/mutants.json');
const DOCUMENT = join(WORKSPACE, 'docs/reliability.md');
const [BEGIN, END] = ['<!-- mutants: written by npm run verify:mutants -- --write -->', '<!-- /mutants -->'];

/** Saves results of mutants for the table. Saved results of other mutants are kept. */
export function keepResults(results: readonly MutantResult[]): void {
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(FILE, `${JSON.stringify(withResults(readResults(), results), null, 2)}\n`);
}

/**
 * Merges new results into saved ones. A mutant that was noticed when planted alone keeps that result if it is
 * noticed again among other mutants, which proves less.
 */
export function withResults(
  saved: readonly MutantResult[],
  results: readonly MutantResult[],
): MutantResult[] {
  const byName = new Map(saved.map((result) => [result.name, result]));
  for (const result of results) {
    const known = byName.get(result.name);
    const wasNoticed = known !== undefined && known.finding !== null;
    const provesLess = result.finding !== null && wasNoticed && known.others < result.others;
    if (!provesLess) byName.set(result.name, result);
  }
  return [...byName.values()];
}

/** Writes the table of all saved results into the documentation. @throws {Error} without the two markers */
export function writeTable(): void {
  const results = readResults();
  const table = mutantTable(MUTANTS, results);
  writeFileSync(DOCUMENT, withTable(readFileSync(DOCUMENT, 'utf8'), table));
}

/** Replaces the table between the two markers. @throws {Error} without the two markers */
export function withTable(document: string, table: readonly string[]): string {
  const [before, rest] = document.split(BEGIN);
  const [, after] = rest?.split(END) ?? [];
  if (before === undefined || after === undefined) throw new Error('the document has no place for the table');
  return `${before}${[BEGIN, '', ...table, '', END].join('\n')}${after}`;
}

/** The lines of a Markdown table. */
export function mutantTable(
  mutants: readonly Pick<Mutant, 'name' | 'description' | 'promise' | 'rounds'>[],
  results: readonly MutantResult[],
): string[] {
  const byName = new Map(results.map((result) => [result.name, result]));
  const rows = mutants.map(({ name, description, promise, rounds }) => {
    const result = byName.get(name);
    const catcher = result === undefined ? 'not run' : catcherOf(result);
    const run = describeRounds(rounds, (kind) => `\`${kind}\``);
    return `| ${[promise, description, run, catcher, took(result)].join(' | ')} |`;
  });
  return [
    '| promise | mistake | run | noticed by | seconds |',
    '| ------- | ------- | --- | ---------- | ------- |',
    ...rows,
  ];
}

/**
 * The seconds of the run if the mutant was planted alone, otherwise the number of other mutants in the copy.
 */
function took(result: MutantResult | undefined): string {
  if (result === undefined) return '';
  return result.others === 0 ? String(result.seconds) : `beside ${result.others}`;
}

/** The check whose finding noticed the mutant. */
function catcherOf({ finding }: MutantResult): string {
  if (finding === null) return '**not noticed**';
  return /^✘ (.*?): /.exec(finding)?.[1] ?? finding;
}

function readResults(): MutantResult[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, 'utf8')) as MutantResult[]) : [];
}
