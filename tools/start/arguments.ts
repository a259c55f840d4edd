import { parseArgs } from 'node:util';
import { choosePorts, isPortName, PORT_NAMES, type PortTable } from '#platform/ports.ts';

/** What the command line of `npm start` says. */
export interface StartArguments {
  readonly ports: PortTable;
  readonly reset: boolean;
  readonly detach: boolean;
  readonly verbose: boolean;
  readonly help: boolean;
  /** Only PostgreSQL and RabbitMQ. */
  readonly infrastructureOnly: boolean;
}

export const USAGE = `Usage: npm start -- [flags]

Starts PostgreSQL, RabbitMQ, the three services and their neighbours on 127.0.0.1, and stops them on Ctrl-C.

  --reset                  throw this checkout's data away first (never the data of a server named by DATABASE_URL)
  --detach                 return when everything is ready; stop later with: npm run stop
  --port <name>=<number>   another port for one of: ${PORT_NAMES.join(', ')}
  --port-offset <number>   move every port by this much
  --infrastructure-only    only PostgreSQL and RabbitMQ
  --verbose                show the logs of everything
  --help                   this text

Environment: DATABASE_URL and RABBITMQ_URL name servers to use instead of private ones.`;

/** An error in the command line; the message is for the user. */
export class ArgumentsError extends Error {}

/** @throws {ArgumentsError} on an unknown flag, a flag without its value, or impossible ports. */
export function parseStartArguments(args: readonly string[]): StartArguments {
  const values = parseFlags(args);
  return {
    ports: parsePorts(values['port'] ?? [], values['port-offset'] ?? '0'),
    reset: values['reset'] ?? false,
    detach: values['detach'] ?? false,
    verbose: values['verbose'] ?? false,
    help: values['help'] ?? false,
    infrastructureOnly: values['infrastructure-only'] ?? false,
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        port: { type: 'string', multiple: true },
        'port-offset': { type: 'string' },
        reset: { type: 'boolean' },
        detach: { type: 'boolean' },
        verbose: { type: 'boolean' },
        'infrastructure-only': { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ArgumentsError(`${message.split('. ')[0] ?? message}. See npm start -- --help`, {
      cause: error,
    });
  }
}

function parsePorts(assignments: readonly string[], offset: string): PortTable {
  if (!/^-?\d{1,5}$/.test(offset))
    throw new ArgumentsError(`--port-offset takes a whole number, not "${offset}"`);
  const chosen = Object.fromEntries(assignments.map(parseAssignment));
  try {
    return choosePorts(Number(offset), chosen);
  } catch (error) {
    if (error instanceof RangeError) throw new ArgumentsError(`--port: ${error.message}`, { cause: error });
    throw error;
  }
}

function parseAssignment(assignment: string): [string, number] {
  const [, name = '', port = ''] = /^([a-z-]+)=(\d{1,5})$/.exec(assignment) ?? [];
  if (!isPortName(name)) {
    throw new ArgumentsError(
      `--port takes <name>=<number> with a name of: ${PORT_NAMES.join(', ')}; not "${assignment}"`,
    );
  }
  return [name, Number(port)];
}
