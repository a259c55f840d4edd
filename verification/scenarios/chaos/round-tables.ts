import { textTable } from '#platform/command-line.ts';
import { seconds } from '../report.ts';
import type { RoundResult } from './run.ts';

/** Tables by fault: number of injections, time until all replicas were ready, longest pauses of callers. */
export function roundTables(rounds: readonly RoundResult[]): string[][] {
  return [
    textTable(['fault', 'injected', 'ready again after (median / longest)'], faultRows(rounds)),
    textTable(['longest pause (median / longest)', ...kindsOf(rounds)], pauseRows(rounds)),
  ];
}

function faultRows(rounds: readonly RoundResult[]): string[][] {
  return byFault(rounds).map(([fault, of]) => {
    const injected = of.filter(({ proof }) => proof !== null).length;
    return [fault, String(injected), spread(of.map(({ recoveredAfterMs }) => recoveredAfterMs))];
  });
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

/** E.g. `1.0 s / 2.5 s`: median and longest. */
function spread(times: readonly number[]): string {
  const sorted = times.toSorted((left, right) => left - right);
  return `${seconds(sorted[Math.floor(sorted.length / 2)] ?? 0)} / ${seconds(sorted.at(-1) ?? 0)}`;
}
