import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { FriendlyError, isErrorCode } from './errors.ts';
import { findProcessStart } from './processes.ts';
import { claimRunRecord, findRunRecord, isSupervised, type RunRecord, sweepLeftovers } from './run-record.ts';

/**
 * Default port of each part of the platform, all on 127.0.0.1. The names are those of `--port
 * <name>=<number>`.
 */
export const DEFAULT_PORTS = {
  auth: 3001,
  settings: 3002,
  task: 3003,
  customers: 3011,
  scheduling: 3012,
  completions: 3013,
  openid: 3014,
  'auth-metrics': 9101,
  'settings-metrics': 9102,
  'task-metrics': 9103,
  postgresql: 54329,
  rabbitmq: 56729,
  'rabbitmq-management': 56739,
  'rabbitmq-distribution': 56749,
  'rabbitmq-epmd': 56759,
} as const;

export type PortName = keyof typeof DEFAULT_PORTS;
export type PortTable = Readonly<Record<PortName, number>>;

export const PORT_NAMES = Object.keys(DEFAULT_PORTS) as PortName[];

export function isPortName(name: string): name is PortName {
  return Object.hasOwn(DEFAULT_PORTS, name);
}

/**
 * Returns the ports of this start: each default plus `offset`, except those chosen individually.
 * @throws {RangeError} if a port is outside 1–65535 or two of them are equal.
 */
export function choosePorts(offset: number, chosen: Readonly<Partial<PortTable>>): PortTable {
  const table = Object.fromEntries(
    PORT_NAMES.map((name) => [name, chosen[name] ?? DEFAULT_PORTS[name] + offset]),
  ) as Record<PortName, number>;
  const owners = new Map<number, PortName>();
  for (const name of PORT_NAMES) {
    const port = table[name];
    if (port < 1 || port > 65_535) throw new RangeError(`port ${port} (${name}) is outside 1–65535`);
    const other = owners.get(port);
    if (other !== undefined) throw new RangeError(`port ${port} is chosen for both ${other} and ${name}`);
    owners.set(port, name);
  }
  return table;
}

export async function findFreePortTable(): Promise<PortTable> {
  const ports = await findFreePorts(PORT_NAMES.length);
  return Object.fromEntries(PORT_NAMES.map((name, index) => [name, ports[index]])) as PortTable;
}

/** Whether a server can listen on 127.0.0.1:`port` right now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) =>
      isErrorCode(error, 'EADDRINUSE', 'EACCES') ? resolve(false) : reject(error),
    );
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/**
 * First port of the first range. All ranges lie below the ephemeral ports, which the system gives to outgoing
 * connections.
 */
const FIRST_PORT = 20_000;
const RANGES = 100;
const PORTS_PER_RANGE = 100;
/** Folder of the ranges' claims, open to every account of this machine. */
const RANGES_FOLDER = '/tmp/property-platform-ports';

let range: Promise<number> | null = null;
/**
 * Counter of tried ports, from a random start. It runs through the range in a circle, so a port is tried
 * again only after all others.
 */
let tried = Math.floor(Math.random() * PORTS_PER_RANGE);

/**
 * Returns `count` different free ports of 127.0.0.1. They are from a range that no other process uses, so
 * that no other process can open one of them before its server does.
 * @throws {FriendlyError} if the range has too few free ports, or every range is claimed
 */
export async function findFreePorts(count: number): Promise<number[]> {
  range ??= claimRange(RANGES_FOLDER);
  const firstPort = FIRST_PORT + (await range) * PORTS_PER_RANGE;
  const found: number[] = [];
  for (let attempt = 0; attempt < PORTS_PER_RANGE && found.length < count; attempt += 1) {
    const port = firstPort + (tried % PORTS_PER_RANGE);
    tried += 1;
    if (await isPortFree(port)) found.push(port);
  }
  if (found.length < count)
    throw new FriendlyError(
      `Only ${found.length} of the ports from ${firstPort} on are free; ${count} are needed.`,
    );
  return found;
}

/**
 * Claims a range until this process ends, and returns its number. Returns the same range to code that is
 * loaded twice in one process.
 */
export async function claimRange(folder: string): Promise<number> {
  if (!existsSync(folder)) {
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
  }
  const record: RunRecord = {
    supervisor: { pid: process.pid, start: findProcessStart(process.pid) ?? '' },
    processes: [],
    removeFolder: null,
  };
  for (let attempt = 0; attempt < RANGES; attempt += 1) {
    const number = (process.pid + attempt) % RANGES;
    const file = join(folder, `${number}.json`);
    const holder = findRunRecord(file);
    if (holder?.supervisor.pid === process.pid && isSupervised(holder)) return number;
    if (holder !== null && !isSupervised(holder)) await sweepLeftovers(file);
    if (claimRunRecord(file, record)) return number;
  }
  throw new FriendlyError(`Every range of ports is claimed (${folder}).`);
}
