import { join } from 'node:path';
import type { Contestant } from './benchmark.ts';
import type { Variables } from '#platform/environments.ts';
import type { Laboratory, RunningProgram } from '#platform/laboratory.ts';

/** Has a program measure and gives the figure. @throws when it cannot */
export async function measureAt(url: string, measurement: string, seconds: number): Promise<number> {
  const query = new URLSearchParams({ name: measurement, seconds: String(seconds) });
  const response = await fetch(`${url}/measure?${query.toString()}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`${measurement} answered ${response.status}: ${text}`);
  return Number(text);
}

/** A bundled program of `programs/` that measures what it imports, on request. */
export interface MeasuredProgram extends RunningProgram {
  /** A contestant whose figure is the measurement of that name. */
  contestant(name: string, does: string): Contestant;
}

/** Starts `programs/<name>.ts` as bundled. */
export async function startMeasuredProgram(
  laboratory: Laboratory,
  name: string,
  variables: Variables = {},
): Promise<MeasuredProgram> {
  const program = await laboratory.startPeer(join('dist/tools/bench/programs', `${name}.js`), variables);
  return {
    ...program,
    contestant: (measurement, does) => ({
      name: measurement,
      does,
      measure: (seconds) => measureAt(program.url, measurement, seconds),
    }),
  };
}
