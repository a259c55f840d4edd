import { join } from 'node:path';
import { productionEnvironment } from '#platform/environments.ts';
import { type Program, serviceOf } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import type { Contestant } from './contest.ts';

/** Has a program measure and gives the figure. @throws when it cannot */
export async function measureAt(url: string, measurement: string, seconds: number): Promise<number> {
  const query = new URLSearchParams({ name: measurement, seconds: String(seconds) });
  const response = await fetch(`${url}/measure?${query.toString()}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`${measurement} answered ${response.status}: ${text}`);
  return Number(text);
}

/** A bundled program of `programs/` that measures what it imports, on request. */
export class MeasuredProgram {
  readonly #program: Program;

  constructor(program: Program) {
    this.#program = program;
  }

  get url(): string {
    return this.#program.url;
  }

  /** A contestant whose figure is the measurement of that name. */
  contestant(name: string, does: string): Contestant {
    return { name, does, measure: (seconds) => measureAt(this.url, name, seconds) };
  }

  stop(): Promise<unknown> {
    return this.#program.stop();
  }
}

/** Starts `programs/<name>.ts` as bundled. */
export async function startMeasuredProgram(
  servers: PrivateServers,
  name: string,
  variables: Variables = {},
): Promise<MeasuredProgram> {
  return new MeasuredProgram(
    await servers.startPeer(join('dist/tools/bench/programs', `${name}.js`), variables),
  );
}

/** Starts the task service whose parts are measured one by one, on the platform's migrated database. The auth service has to run: it is
 *  asked for revocations all the time, as in production. */
export function startTaskParts(
  servers: PrivateServers,
  { settings }: TestPlatform,
  variables: Variables = {},
): Promise<MeasuredProgram> {
  const environment = productionEnvironment(serviceOf('task'), settings);
  return startMeasuredProgram(servers, 'task-service', { ...environment, ...variables });
}
