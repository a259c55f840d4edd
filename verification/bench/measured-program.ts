import { join } from 'node:path';
import { productionEnvironment } from '#platform/environments.ts';
import { type Program, serviceOf } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import type { Contestant } from './contest.ts';

/** Has a program measure and returns the figure. @throws when it cannot */
export async function measureAt(url: string, measurement: string, seconds: number): Promise<number> {
  const query = new URLSearchParams({ name: measurement, seconds: String(seconds) });
  const response = await fetch(`${url}/measure?${query.toString()}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`${measurement} returned ${response.status}: ${text}`);
  return Number(text);
}

/** A contestant whose figure is the program's measurement of that name. */
export function measuredBy({ url }: Program, name: string, does: string): Contestant {
  return { name, does, measure: (seconds) => measureAt(url, name, seconds) };
}

/** Starts the bundle of `programs/<name>.ts`, which measures what it imports, on request. */
export function startMeasuredProgram(
  servers: PrivateServers,
  name: string,
  variables: Variables = {},
): Promise<Program> {
  return servers.startPeer(join('dist/verification/bench/programs', `${name}.js`), variables);
}

/**
 * Starts the task service whose parts are measured one by one, on the platform's migrated database. The auth
 * service has to run: it is asked for revocations all the time, as in production.
 */
export function startTaskParts(
  servers: PrivateServers,
  { settings }: TestPlatform,
  variables: Variables = {},
): Promise<Program> {
  const environment = productionEnvironment(serviceOf('task'), settings);
  return startMeasuredProgram(servers, 'task-service', { ...environment, ...variables });
}
