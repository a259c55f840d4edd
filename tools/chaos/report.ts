import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
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
    ...table(['fault', 'injected', 'ready again after (median / longest)'], faultRows(result.rounds)),
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
  return [...new Set(rounds.map(({ fault }) => fault.kind))].map((kind) => {
    const of = rounds.filter(({ fault }) => fault.kind === kind);
    const times = of.map(({ recoveredAfterMs }) => recoveredAfterMs).sort((left, right) => left - right);
    const median = seconds(times[Math.floor(times.length / 2)] ?? 0);
    const injected = of.filter(({ proof }) => proof !== null).length;
    return [kind, String(injected), `${median} / ${seconds(times.at(-1) ?? 0)}`];
  });
}

/** What was compared, a line each. */
export function checkTable(checks: readonly Check[]): string[] {
  return table(['what', 'acknowledged', 'audited', 'lost', 'twice', 'other'], checks.map(checkRow));
}

function checkRow({ name, acknowledged, audited, lost, duplicated, findings }: Check): string[] {
  const other = Math.max(0, findings.length - lost - duplicated);
  return [name, ...[acknowledged, audited, lost, duplicated, other].map(String)];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [line(head), line(widths.map((width) => '─'.repeat(width))), ...rows.map(line)];
}
