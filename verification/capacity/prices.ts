import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';
import {
  IDLE_COSTS,
  PACED_COSTS,
  readTable,
  REQUEST_COSTS,
  type WrittenTable,
} from '#verification/bench/costs/page.ts';
import { type ByPart, byPart, PARTS } from '#verification/bench/costs/usage.ts';
import type { Work } from './workload.ts';

/** What one of something costs at an ordinary pace: processor time in µs, and bytes of PostgreSQL's log. */
export interface Price {
  readonly service: number;
  readonly postgresql: number;
  readonly rabbitmq: number;
  readonly walBytes: number;
  /**
   * Processor time when the service is busy all the time, where that is known; many requests then share a
   * statement.
   */
  readonly whenBusy: { readonly service: number; readonly postgresql: number };
}

/** What a process uses without any request. */
export interface IdlePrice {
  /** Processors kept busy. */
  readonly cores: ByPart;
  /** Resident memory after a load; 0 where it has none of its own. */
  readonly megabytes: number;
}

/** @throws {Error} where docs/performance.md has no such row */
export function priceOf(work: Work): Price {
  const [service, postgresql, rabbitmq, walBytes] = figures(PACED_COSTS, work);
  const price = known({ service, postgresql, rabbitmq, walBytes }, work);
  const crowded = readTable(REQUEST_COSTS).get(work);
  // Of a new schedule that table leaves out the instances that follow.
  if (crowded === undefined || work === 'createSchedule') return { ...price, whenBusy: price };
  const [, , , busyService, busyPostgresql] = crowded.map(Number);
  return { ...price, whenBusy: known({ service: busyService, postgresql: busyPostgresql }, work) };
}

/** @throws {Error} where docs/performance.md has no such row */
export function idlePriceOf(process: string): IdlePrice {
  const cells = readTable(IDLE_COSTS).get(process) ?? [];
  const milliseconds = known(
    byPart((part) => Number(cells[PARTS.indexOf(part)])),
    process,
  );
  const megabytes = Number(cells[PARTS.length + 1]);
  return {
    cores: byPart((part) => milliseconds[part] / 1_000),
    megabytes: Number.isFinite(megabytes) ? megabytes : 0,
  };
}

/** What PostgreSQL's process for a connection holds by itself, in MB. */
export function connectionMegabytes(): number {
  const cells = readTable(IDLE_COSTS).get('a connection of PostgreSQL') ?? [];
  return known({ megabytes: Number(cells[PARTS.length + 1]) }, 'a connection').megabytes;
}

/** Bytes per row with all indexes of a table in docs/scaling.md. @throws {Error} where it is not there */
export function rowBytes(table: string): number {
  const lines = readFileSync(join(WORKSPACE, 'docs/scaling.md'), 'utf8').split('\n');
  const rows = lines.map((line) => line.split('|').map((cell) => cell.trim()));
  const [, , cell = ''] = rows.find(([, first]) => first === `\`${table}\``) ?? [];
  return known({ bytes: Number.parseInt(cell, 10) }, table).bytes;
}

/** Growth of a service's memory for each client that waits, in MB. */
export function watcherMegabytes(): number {
  const { figure } = benchFigures('settings-watchers-1000', 'MB');
  return figure / 1_000;
}

/** A rate per second that was measured, with the processors that were busy meanwhile. */
export interface MeasuredPoint {
  readonly rate: number;
  readonly service: number;
  readonly postgresql: number;
}

/** What the last full run of `npm run bench` measured of a contestant. @throws {Error} where there is none */
export function measuredPoint(benchmark: string, contestant: string): MeasuredPoint {
  const { figure: rate, service, postgresql } = benchFigures(benchmark, contestant);
  return { rate, service, postgresql };
}

interface Contestant {
  readonly name: string;
  readonly spread: { readonly median: number };
  readonly processors: { readonly program: number; readonly postgresql: number };
}

function benchFigures(benchmark: string, contestant: string) {
  const { benchmarks } = JSON.parse(
    readFileSync(join(WORKSPACE, 'docs/benchmarks/results.json'), 'utf8'),
  ) as { benchmarks: { id: string; result: { contestants: Contestant[] } }[] };
  const found = benchmarks.find(({ id }) => id === benchmark)?.result.contestants;
  const { spread, processors } = found?.find(({ name }) => name === contestant) ?? {};
  const [figure, service, postgresql] = [spread?.median, processors?.program, processors?.postgresql];
  return known({ figure, service, postgresql }, `${benchmark}, ${contestant}`);
}

function figures(table: WrittenTable, row: string): (number | undefined)[] {
  return (readTable(table).get(row) ?? []).map(Number);
}

/** @throws {Error} where a number is missing */
function known<Name extends string>(
  numbers: Readonly<Record<Name, number | undefined>>,
  of: string,
): Readonly<Record<Name, number>> {
  if (Object.values(numbers).some((value) => !Number.isFinite(value)))
    throw new Error(`docs/ has no figures of ${of}`);
  return numbers as Readonly<Record<Name, number>>;
}
