import { execFileSync } from 'node:child_process';
import { findFreePorts } from '#platform/free-ports.ts';
import { SERVICES, type Service } from '#platform/programs.ts';
import type { PlatformSettings } from '#platform/environments.ts';
import type { Benchmark, Contest, Contestant } from '../benchmark.ts';
import type { Laboratory, RunningProgram } from '#platform/laboratory.ts';

const EMPTY = {
  name: 'empty app',
  does: 'Nest on Fastify with one route, bundled the same way; ready when that route answers',
};
const BUNDLE = 'dist/tools/bench/programs/empty-nest.js';

const DOES: Readonly<Record<Service['service'], string>> = {
  auth: 'ready when it has read its keys and revocations and reaches its database',
  settings: "ready when it has auth-service's keys and revocations and reaches its database",
  task: "ready when it has auth-service's keys and revocations, reaches its database and both buses and consumes its queues",
};

type Figure = (program: RunningProgram) => number;

/** Starts of production processes; databases, broker and auth-service are there already. */
async function prepareStarts(laboratory: Laboratory, unit: string, figure: Figure): Promise<Contest> {
  const services = await laboratory.startServices(['auth']);
  for (const { service } of SERVICES)
    if (service !== 'auth') await laboratory.migrate(service, services.settings);
  const starting = (start: () => Promise<RunningProgram>): Contestant['measure'] => {
    return async () => {
      const program = await start();
      const value = figure(program);
      await program.stop();
      return value;
    };
  };
  return {
    unit,
    maxRounds: 5,
    contestants: [
      ...SERVICES.map((service) => ({
        name: service.name,
        does: DOES[service.service],
        measure: starting(() => startOnFreePorts(laboratory, service, services.settings)),
      })),
      { ...EMPTY, measure: starting(() => laboratory.startPeer(BUNDLE, {})) },
    ],
    comparisons: SERVICES.map(({ name }) => ({
      title: `${name} : empty app`,
      of: name,
      against: EMPTY.name,
      goal: { atMost: 2 },
    })),
    conditions: [
      'production bundles, files in the page cache, databases migrated, broker and auth-service running',
    ],
    close: () => services.stop(),
  };
}

/** Beside the auth-service that the others need, there is one that is measured. */
async function startOnFreePorts(
  laboratory: Laboratory,
  service: Service,
  settings: PlatformSettings,
): Promise<RunningProgram> {
  const [port, metricsPort] = (await findFreePorts(2)) as [number, number];
  return laboratory.startService(service, settings, {
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
  });
}

function residentMegabytes({ pid }: RunningProgram): number {
  const kibibytes = execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' });
  return (Number(kibibytes) * 1_024) / 1e6;
}

/** From the start of the process to readiness. */
export const coldStart: Benchmark = {
  id: 'cold-start',
  title: 'Start of a process until it is ready',
  prepare: (laboratory) => prepareStarts(laboratory, 'ms', ({ readyAfterMs }) => readyAfterMs),
};

/** Memory of the process that has just become ready. */
export const coldStartMemory: Benchmark = {
  id: 'cold-start-memory',
  title: 'Resident memory of a process when it is ready',
  prepare: (laboratory) => prepareStarts(laboratory, 'MB', residentMegabytes),
};
