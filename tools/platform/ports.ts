import { chmodSync, existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { FriendlyError, isErrorCode } from './errors.ts';
import { findProcessStart } from './processes.ts';
import { claimRunRecord, findRunRecord, isSupervised, type RunRecord, sweepLeftovers } from './run-record.ts';

/** Every port of the platform by its name in `--port <name>=<number>`, all on 127.0.0.1. */
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
 * The ports of this start: every default moved by `offset`, except those chosen one by one.
 * @throws {RangeError} when a port is outside 1–65535 or two of them are the same.
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

/** True when a server may listen on 127.0.0.1:`port` right now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) =>
      isErrorCode(error, 'EADDRINUSE', 'EACCES') ? resolve(false) : reject(error),
    );
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

/** Below the range that the system hands to clients: such a port would go to the next outgoing connection. */
const FIRST_PORT = 20_000;
const RANGES = 100;
const PORTS_PER_RANGE = 100;
/** Open to every account of this machine. */
const RANGES_FOLDER = '/tmp/property-platform-ports';

let range: Promise<number> | null = null;
/** How many of the range's ports were tried: none comes twice before all others came. */
let tried = Math.floor(Math.random() * PORTS_PER_RANGE);

/**
 * `count` different ports of 127.0.0.1 that are free, out of a range that no other process takes ports from.
 * So nobody else can open
 * one of them before its server does.
 * @throws {FriendlyError} when the range has no more, or every range is taken
 */
export async function findFreePorts(count: number): Promise<number[]> {
  range ??= claimRange(RANGES_FOLDER);
  const firstPort = FIRST_PORT + (await range) * PORTS_PER_RANGE;
  const found: number[] = [];
  for (let looks = 0; looks < PORTS_PER_RANGE && found.length < count; looks += 1) {
    const port = firstPort + (tried % PORTS_PER_RANGE);
    tried += 1;
    if (await isPortFree(port)) found.push(port);
  }
  if (found.length < count)
    throw new FriendlyError(`Of the ports from ${firstPort} on only ${found.length} are free, not ${count}.`);
  return found;
}

/**
 * The number of a range that is this process's until it ends. Code that is loaded twice in one process gets
 * the same one.
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
  throw new FriendlyError(`Every range of ports is taken (${folder}).`);
}
