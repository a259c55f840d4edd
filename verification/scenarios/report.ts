import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { textTable } from '#platform/command-line.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { type Check, firstFindings } from '#verification/audit/check.ts';
import type { Result } from './scenario.ts';

/** The contents of a report. */
interface Reported extends Omit<Result, 'figures'> {
  /** The command that repeats the run. */
  readonly command: string;
}

/** True if no check has findings. */
export function isClean(checks: readonly Check[]): boolean {
  return checks.every(({ findings }) => findings.length === 0);
}

/** Renders the blocks of the scenario, the table of checks, and the findings. */
export function renderReport({ blocks, checks, success, command }: Reported): string {
  const count = checks.reduce((sum, { findings }) => sum + findings.length, 0);
  return [
    '',
    ...blocks.flatMap((lines) => [...lines, '']),
    ...checkTable(checks),
    '',
    ...checks.flatMap(firstFindings),
    isClean(checks) ? `✔ ${success}` : `✘ ${count} findings. Again with: ${command}`,
  ].join('\n');
}

/** Saves all results as JSON. @param file below test-results/ @returns the path of the file */
export function saveResult(file: string, result: object): string {
  const path = join(WORKSPACE, 'test-results', file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(result, null, 2)}\n`);
  return path;
}

/** E.g. `4.2 s`. */
export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function checkTable(checks: readonly Check[]): string[] {
  return textTable(['what', 'acknowledged', 'audited', 'lost', 'twice', 'other'], checks.map(checkRow));
}

function checkRow({ name, acknowledged, audited, lost, duplicated, findings }: Check): string[] {
  const other = Math.max(0, findings.length - lost - (duplicated ?? 0));
  return [name, ...[acknowledged, audited, lost, duplicated ?? '–', other].map(String)];
}
