import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { textTable } from '#platform/command-line.ts';
import type { Check } from './audit/check.ts';
import { describeFault, seconds } from './plan.ts';
import type { RoundResult, RunResult } from './run.ts';

/** True when nothing was lost, done twice or otherwise wrong. */
export function isClean({ checks }: Pick<RunResult, 'checks'>): boolean {
  return checks.every(({ findings }) => findings.length === 0);
}

/** The tables at the end of a run, and what was found. */
export function renderReport(result: RunResult): string {
  const findings = result.checks.flatMap(({ name, findings: found }) =>
    found.map((text) => `✘ ${name}: ${text}`),
  );
  return [
    '',
    ...textTable(['fault', 'injected', 'ready again after (median / longest)'], faultRows(result.rounds)),
    '',
    ...textTable(['longest pause (median / longest)', ...kindsOf(result.rounds)], pauseRows(result.rounds)),
    '',
    ...checkTable(result.checks),
    '',
    `${result.attempts} requests, ${result.lostResponses} responses thrown away by their callers, ${result.repeatedMessages} messages published twice; ` +
      `a revoked token was accepted for ${seconds(result.slowestRevocationMs)} at most; drained after ${seconds(result.drainedAfterMs)}`,
    '',
    ...findings,
    isClean(result)
      ? `✔ seed ${result.seed}: nothing lost, nothing twice`
      : `✘ seed ${result.seed}: ${findings.length} findings. Again with: npm run chaos -- --seed ${result.seed} ${result.flags}`,
  ].join('\n');
}

/** Keeps everything as JSON under `folder`, and returns the file's name. @param dist the build that was run */
export function saveResult(folder: string, dist: string, result: RunResult): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${basename(dist)}-seed-${result.seed}-rounds-${result.rounds.length}.json`);
  const rounds = result.rounds.map((round) => ({ ...round, description: describeFault(round.fault) }));
  writeFileSync(file, `${JSON.stringify({ ...result, rounds }, null, 2)}\n`);
  return file;
}

function faultRows(rounds: readonly RoundResult[]): string[][] {
  return byFault(rounds).map(([fault, of]) => {
    const injected = of.filter(({ proof }) => proof !== null).length;
    return [fault, String(injected), spread(of.map(({ recoveredAfterMs }) => recoveredAfterMs))];
  });
}

/** What was compared, a line each. */
export function checkTable(checks: readonly Check[]): string[] {
  return textTable(['what', 'acknowledged', 'audited', 'lost', 'twice', 'other'], checks.map(checkRow));
}

function kindsOf(rounds: readonly RoundResult[]): string[] {
  return [...new Set(rounds.flatMap(({ pausesMs }) => Object.keys(pausesMs)))].sort();
}

function pauseRows(rounds: readonly RoundResult[]): string[][] {
  const kinds = kindsOf(rounds);
  return byFault(rounds).map(([fault, of]) => [
    fault,
    ...kinds.map((kind) => spread(of.map(({ pausesMs }) => pausesMs[kind] ?? 0))),
  ]);
}

function byFault(rounds: readonly RoundResult[]): [fault: string, of: RoundResult[]][] {
  const names = [...new Set(rounds.map(({ fault }) => fault.kind))];
  return names.map((name) => [name, rounds.filter(({ fault }) => fault.kind === name)]);
}

/** Median and longest. */
function spread(times: readonly number[]): string {
  const sorted = times.toSorted((left, right) => left - right);
  return `${seconds(sorted[Math.floor(sorted.length / 2)] ?? 0)} / ${seconds(sorted.at(-1) ?? 0)}`;
}

function checkRow({ name, acknowledged, audited, lost, duplicated, findings }: Check): string[] {
  const other = Math.max(0, findings.length - lost - duplicated);
  return [name, ...[acknowledged, audited, lost, duplicated, other].map(String)];
}
