import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORKSPACE } from '#platform/state-folder.ts';

/** What one of something costs: processor time in µs, and bytes of PostgreSQL's log. */
export interface Card {
  readonly service: number;
  readonly postgresql: number;
  readonly walBytes: number;
}

/** A rate per second that was measured, with the processors that were busy meanwhile. */
export interface MeasuredPoint {
  readonly rate: number;
  readonly service: number;
  readonly postgresql: number;
}

/** Measured with 8,000 fires and with 600 schedules: a fire with its message, sent and taken; one of 30 instances, with what leads to it. */
const BACKGROUND_WAL = { fire: 1_958, instance: 615 };

/** What `npm run costs` wrote of an operation. @throws {Error} where it wrote nothing */
export function requestCard(operation: string): Card {
  const [, , walBytes, service, postgresql] = rowOf('performance.md', operation).map(Number);
  return known({ service, postgresql, walBytes }, operation);
}

/** Bytes per row with all indexes of a table in docs/scaling.md. @throws {Error} where it is not there */
export function rowBytes(table: string): number {
  const [cell = ''] = rowOf('scaling.md', `\`${table}\``);
  return known({ bytes: Number.parseInt(cell, 10) }, table).bytes;
}

/** What the last full run of `npm run bench` measured of a contestant. @throws {Error} where there is none */
export function measuredPoint(benchmark: string, contestant: string): MeasuredPoint {
  const { benchmarks } = JSON.parse(
    readFileSync(join(WORKSPACE, 'docs/benchmarks/results.json'), 'utf8'),
  ) as {
    benchmarks: { id: string; result: { contestants: Contestant[] } }[];
  };
  const found = benchmarks.find(({ id }) => id === benchmark)?.result.contestants;
  const { spread, processors } = found?.find(({ name }) => name === contestant) ?? {};
  const [rate, service, postgresql] = [spread?.median, processors?.program, processors?.postgresql];
  return known({ rate, service, postgresql }, `${benchmark}, ${contestant}`);
}

interface Contestant {
  readonly name: string;
  readonly spread: { readonly median: number };
  readonly processors: { readonly program: number; readonly postgresql: number };
}

/** Work without a request, of its benchmark. */
export function backgroundCards(): Readonly<Record<'fire' | 'event' | 'instance', Card>> {
  const card = (point: MeasuredPoint, walBytes: number): Card => ({
    service: (point.service / point.rate) * 1e6,
    postgresql: (point.postgresql / point.rate) * 1e6,
    walBytes,
  });
  return {
    fire: card(measuredPoint('scheduler-fire', 'one node, 1,000,000 triggers'), BACKGROUND_WAL.fire),
    // What the outbox writes is part of what wrote the event.
    event: card(measuredPoint('outbox-relay', 'relay'), 0),
    instance: card(measuredPoint('generation', 'generate'), BACKGROUND_WAL.instance),
  };
}

function rowOf(page: string, name: string): string[] {
  const lines = readFileSync(join(WORKSPACE, 'docs', page), 'utf8').split('\n');
  const rows = lines.map((line) => line.split('|').map((cell) => cell.trim()));
  return rows.find(([, first]) => first === name)?.slice(2) ?? [];
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
