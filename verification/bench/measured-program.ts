import { join } from 'node:path';
import { productionEnvironment } from '#platform/environments.ts';
import { type Program, serviceOf } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import type { Contestant } from './contest.ts';

/** Runs a measurement of a program and returns the figure. @throws {Error} if it fails */
export async function measureAt(url: string, measurement: string, seconds: number): Promise<number> {
  const query = new URLSearchParams({ name: measurement, seconds: String(seconds) });
  const response = await fetch(`${url}/measure?${query.toString()}`);
  const text = await response.text();
  if (!response.ok) throw new Error(`${measurement} returned ${response.status}: ${text}`);
  return Number(text);
}

/** A contestant whose figure is the measurement `name` of a program. */
export function measuredBy({ url }: Program, name: string, does: string): Contestant {
  return { name, does, measure: (seconds) => measureAt(url, name, seconds) };
}

/** Starts the bundle of `programs/<name>.ts`, which measures its imports on request. */
export function startMeasuredProgram(
  servers: PrivateServers,
  name: string,
  variables: Variables = {},
): Promise<Program> {
  return servers.startPeer(join('dist/verification/bench/programs', `${name}.js`), variables);
}

/**
 * Starts the program that measures parts of the task service, on the platform's migrated database. The auth
 * service must be running, because the program polls its revocations as in production.
 */
export function startTaskParts(
  servers: PrivateServers,
  { settings }: TestPlatform,
  variables: Variables = {},
): Promise<Program> {
  const environment = productionEnvironment(serviceOf('task'), settings);
  return startMeasuredProgram(servers, 'task-service', { ...environment, ...variables });
}
