import { InvalidArgumentError } from 'commander';
import { ArgumentsError, commandLine } from '#platform/command-line.ts';
import { choosePorts, isPortName, PORT_NAMES, type PortName, type PortTable } from '#platform/ports.ts';

export interface StartArguments {
  readonly ports: PortTable;
  readonly reset: boolean;
  readonly detach: boolean;
  readonly verbose: boolean;
  /** Whether to start only PostgreSQL and RabbitMQ. */
  readonly infrastructureOnly: boolean;
}

const DESCRIPTION =
  'Starts PostgreSQL, RabbitMQ, the three services and their neighbours on 127.0.0.1, and stops them on Ctrl-C.';
const ENVIRONMENT =
  '\nEnvironment: DATABASE_URL and RABBITMQ_URL name servers to use instead of private ones, MIGRATION_DATABASE_URL the same database without a pooler.';

type Ports = Readonly<Partial<PortTable>>;

/** @throws {ArgumentsError} for an unknown flag, a flag without its value, or impossible ports. */
export function parseStartArguments(args: readonly string[]): StartArguments {
  const { port, portOffset, ...flags } = commandLine('npm start', '-- [flags]', DESCRIPTION)
    .option(
      '--reset',
      "delete this checkout's data first (never the data of a server named by DATABASE_URL)",
      false,
    )
    .option('--detach', 'return when everything is ready; stop later with: npm run stop', false)
    .option<Ports>(
      '--port <name=number>',
      `another port for one of: ${PORT_NAMES.join(', ')}`,
      (assignment, chosen) => ({ ...chosen, ...parseAssignment(assignment) }),
      {},
    )
    .option('--port-offset <number>', 'add this number to every default port', parseOffset, 0)
    .option('--infrastructure-only', 'only PostgreSQL and RabbitMQ', false)
    .option('--verbose', 'show the logs of everything', false)
    .addHelpText('after', ENVIRONMENT)
    .parse(args, { from: 'user' })
    .opts<Omit<StartArguments, 'ports'> & { port: Ports; portOffset: number }>();
  try {
    return { ...flags, ports: choosePorts(portOffset, port) };
  } catch (error) {
    if (error instanceof RangeError) throw new ArgumentsError(`--port: ${error.message}`, { cause: error });
    throw error;
  }
}

function parseOffset(text: string): number {
  if (!/^-?\d{1,5}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.');
  return Number(text);
}

function parseAssignment(assignment: string): Ports {
  const [, name = '', port = ''] = /^([a-z-]+)=(\d{1,5})$/.exec(assignment) ?? [];
  if (!isPortName(name))
    throw new InvalidArgumentError(`It must be <name>=<number> with a name of: ${PORT_NAMES.join(', ')}.`);
  return { [name]: Number(port) };
}

/** Returns the ports that this start will listen on; none for a server that the user named. */
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
