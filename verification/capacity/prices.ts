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

/** The cost of one piece of work at an ordinary pace: µs of processor time, bytes of PostgreSQL’s log. */
export interface Price {
  readonly service: number;
  readonly postgresql: number;
  readonly rabbitmq: number;
  readonly walBytes: number;
  /** Processor time while the service is always busy, if known. Many requests then share a statement. */
  readonly whenBusy: { readonly service: number; readonly postgresql: number };
}

/** The resources that a process uses without requests. */
export interface IdlePrice {
  /** Busy processors. */
  readonly cores: ByPart;
  /** Resident memory after a load. 0 if the table has none. */
  readonly megabytes: number;
}

/** Reads the price of work from docs/performance.md. @throws {Error} if there is no such row */
export function priceOf(work: Work): Price {
  const [service, postgresql, rabbitmq, walBytes] = figures(PACED_COSTS, work);
  const price = known({ service, postgresql, rabbitmq, walBytes }, work);
  const crowded = readTable(REQUEST_COSTS).get(work);
  // For createSchedule, the table of request costs omits the instances that are generated later.
  if (crowded === undefined || work === 'createSchedule') return { ...price, whenBusy: price };
  const [, , , busyService, busyPostgresql] = crowded.map(Number);
  return { ...price, whenBusy: known({ service: busyService, postgresql: busyPostgresql }, work) };
}

/** Reads the idle price of a process from docs/performance.md. @throws {Error} if there is no such row */
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

/** Private memory of PostgreSQL's process for a connection, in MB. */
export function connectionMegabytes(): number {
  const cells = readTable(IDLE_COSTS).get('a connection of PostgreSQL') ?? [];
  return known({ megabytes: Number(cells[PARTS.length + 1]) }, 'a connection').megabytes;
}

/**
 * Reads the bytes per row of a table, with all indexes, from docs/scaling.md.
 * @throws {Error} if it is missing
 */
export function rowBytes(table: string): number {
  const lines = readFileSync(join(WORKSPACE, 'docs/scaling.md'), 'utf8').split('\n');
  const rows = lines.map((line) => line.split('|').map((cell) => cell.trim()));
  const [, , cell = ''] = rows.find(([, first]) => first === `\`${table}\``) ?? [];
  return known({ bytes: Number.parseInt(cell, 10) }, table).bytes;
}

/** Memory of settings-service per waiting client, in MB. */
export function watcherMegabytes(): number {
  const { figure } = benchFigures('settings-watchers-1000', 'MB');
  return figure / 1_000;
}

/** A measured rate per second, and the busy processors during the measurement. */
export interface MeasuredPoint {
  readonly rate: number;
  readonly service: number;
  readonly postgresql: number;
}

/** Reads a measurement of the last full run of `npm run bench`. @throws {Error} if there is none */
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

/** Returns the numbers. @throws {Error} if one is missing */
function known<Name extends string>(
  numbers: Readonly<Record<Name, number | undefined>>,
  of: string,
): Readonly<Record<Name, number>> {
  if (Object.values(numbers).some((value) => !Number.isFinite(value)))
    throw new Error(`docs/ has no figures of ${of}`);
  return numbers as Readonly<Record<Name, number>>;
}
