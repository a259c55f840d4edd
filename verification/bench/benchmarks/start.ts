import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { findFreePorts, PORT_NAMES } from '#platform/ports.ts';
import { makeTemporaryFolder } from '#platform/private-servers.ts';
import { residentBytes } from '#platform/proc.ts';
import { type Program, type Service, SERVICES } from '#platform/programs.ts';
import { findRunAs } from '#platform/run-as.ts';
import { openStateFolder, WORKSPACE } from '#platform/state-folder.ts';
import type { PrivateServers } from '#platform/test-platform.ts';
import { type Benchmark, closing, type Contest } from '../contest.ts';

const EMPTY = 'empty app';
const BUNDLE = 'dist/verification/bench/programs/empty-nest.js';

const DOES: Readonly<Record<Service['service'], string>> = {
  auth: 'ready when it has read its keys and revocations and reaches its database',
  settings: "ready when it has auth-service's keys and revocations and reaches its database",
  task: "ready when it has auth-service's keys and revocations, reaches its database and both buses and consumes its queues",
};

/** Prepares starts of production processes. Databases, broker and auth-service are already running. */
async function prepareStarts(
  servers: PrivateServers,
  unit: string,
  atMost: number,
  figure: (program: Program) => number,
): Promise<Contest> {
  const platform = await servers.startPlatform(['auth']);
  for (const { service } of SERVICES) if (service !== 'auth') await platform.migrate(service);
  const starting = (start: () => Promise<Program>) => async (): Promise<number> => {
    const program = await start();
    const value = figure(program);
    await program.stop();
    return value;
  };
  return {
    unit,
    maxRounds: 5,
    contestants: [
      ...SERVICES.map((service) => ({
        name: service.name,
        does: DOES[service.service],
        // Measures an additional auth-service, not the one that the other services need.
        measure: starting(() => platform.addReplica(service.service)),
      })),
      {
        name: EMPTY,
        does: "Nest on Fastify with one route; reads its packages from node_modules, with Node's compile cache; ready when that route responds",
        measure: starting(() => servers.startPeer(BUNDLE, {})),
      },
    ],
    comparisons: SERVICES.map(({ name: of }) => {
      return { title: `${of} : empty app`, of, against: EMPTY, goal: { atMost } };
    }),
    conditions: [
      'production bundles, files in the page cache, databases migrated, broker and auth-service running',
    ],
    close: closing(platform),
  };
}

function residentMegabytes({ pid }: Program): number {
  return residentBytes(pid)! / 1e6;
}

/** Time from the start of a process until it is ready. */
export const coldStart: Benchmark = {
  id: 'cold-start',
  title: 'Time from the start of a process until it is ready',
  prepare: (servers) => prepareStarts(servers, 'ms', 1.4, ({ readyAfterMs }) => readyAfterMs),
};

/** Memory of a process that has just become ready. */
export const coldStartMemory: Benchmark = {
  id: 'cold-start-memory',
  title: 'Resident memory of a process when it is ready',
  prepare: (servers) => prepareStarts(servers, 'MB', 1.5, residentMegabytes),
};

const LIMIT_SECONDS = 12;
const READY = /^Ready after /;

/** The first start of a new clone. */
export const firstRun: Benchmark = {
  id: 'first-run',
  title: 'npm start in a fresh clone, until the platform is ready',
  standsAlone: true,
  prepare: () =>
    Promise.resolve({
      unit: 's',
      maxRounds: 2,
      contestants: [
        {
          name: 'npm start',
          does: 'builds, creates and starts PostgreSQL and RabbitMQ, migrates, loads the identities, starts three services and four neighbours, prints how to use them',
          measure: measureFirstRun,
        },
      ],
      comparisons: [
        { title: `${LIMIT_SECONDS} s`, of: 'npm start', against: LIMIT_SECONDS, goal: { atMost: 1 } },
      ],
      conditions: [
        'git clone of the committed state; the packages of npm and of the servers are already installed, so downloads are not measured',
        'the servers of the other benchmarks have ended',
      ],
      close: () => Promise.resolve(),
    }),
};

async function measureFirstRun(): Promise<number> {
  const folder = makeTemporaryFolder(findRunAs());
  const clone = join(folder, 'clone');
  try {
    execFileSync('git', ['clone', '--quiet', WORKSPACE, clone]);
    linkPackages(clone);
    linkServers(clone);
    return await timeStart(clone);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Creates node_modules as a folder of links, not as one link. If npm start installed packages again, it would
 * delete only these links.
 */
function linkPackages(clone: string): void {
  const [from, to] = [join(WORKSPACE, 'node_modules'), join(clone, 'node_modules')];
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    if (name !== '.installed-from') symlinkSync(join(from, name), join(to, name));
  }
  // The same content as tools/platform/install.mjs writes.
  const lock = createHash('sha256')
    .update(readFileSync(join(clone, 'package-lock.json')))
    .digest('hex');
  writeFileSync(join(to, '.installed-from'), `${process.platform}-${process.arch} ${lock}\n`);
}

/** Copies the server programs that this checkout has already fetched from their registries. */
function linkServers(clone: string): void {
  const cache = join(openStateFolder(WORKSPACE), 'cache');
  if (existsSync(cache))
    cpSync(cache, join(openStateFolder(clone), 'cache'), { recursive: true, verbatimSymlinks: true });
}

async function timeStart(clone: string): Promise<number> {
  const free = await findFreePorts(PORT_NAMES.length);
  const ports = PORT_NAMES.flatMap((name, index) => ['--port', `${name}=${free[index]}`]);
  const startedAtMs = performance.now();
  const npm = spawn('npm', ['start', '--', ...ports], {
    cwd: clone,
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(npm, 'exit');
  try {
    await untilReady(npm);
    return (performance.now() - startedAtMs) / 1_000;
  } finally {
    npm.kill('SIGTERM');
    await ended;
  }
}

async function untilReady(npm: ChildProcess): Promise<void> {
  const lines: string[] = [];
  npm.stderr!.on('data', (text: Buffer) => lines.push(text.toString()));
  for await (const line of createInterface(npm.stdout!)) {
    if (READY.test(line)) return;
    lines.push(line);
  }
  throw new Error(`npm start ended before it was ready:\n${lines.join('\n')}`);
}

/**
 * The environment of a user: without addresses of servers, and without the variables of the npm that runs
 * this.
 */
function plainEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^npm_|^INIT_CWD$|^NODE_ENV$|^RABBITMQ_URL$|^(MIGRATION_)?DATABASE_URL$/i.test(name),
    ),
  );
}
