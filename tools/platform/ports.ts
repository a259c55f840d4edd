import { createServer } from 'node:net';
import { isErrorCode } from './errors.ts';

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

/** `count` different ports of 127.0.0.1 that were free a moment ago, below the range the system hands to clients. */
export async function findFreePorts(count: number): Promise<number[]> {
  // Not listen(0): the kernel gives such a port to the next outgoing connection, and a suite makes thousands of them.
  const found: number[] = [];
  for (let port = 20_000 + Math.floor(Math.random() * 10_000); found.length < count; port++) {
    if (await isPortFree(port)) found.push(port);
  }
  return found;
}
