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

/** True when `name` is one of the platform's ports. */
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

/** The ports that this start will listen on: none for a server that the user named. */
export function portsToOpen(plan: {
  readonly database: boolean;
  readonly broker: boolean;
  readonly infrastructureOnly: boolean;
}): PortName[] {
  return PORT_NAMES.filter((name) => {
    if (name === 'postgresql') return !plan.database;
    if (name.startsWith('rabbitmq')) return !plan.broker;
    return !plan.infrastructureOnly;
  });
}

/** What to tell the user about ports that other programs hold. */
export function describeTakenPorts(taken: readonly PortName[], ports: PortTable): string {
  const lines = taken.map(
    (name) => `  port ${ports[name]} for ${name}: choose another with --port ${name}=<number>`,
  );
  return [
    'Other programs listen on ports that the platform needs:',
    ...lines,
    'Or move all of them at once, for example: npm start -- --port-offset 1000',
  ].join('\n');
}
