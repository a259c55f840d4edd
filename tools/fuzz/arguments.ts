import { parseArgs } from 'node:util';
import { type ServiceName, SERVICES } from '#platform/programs.ts';

/** What `npm run fuzz` was asked for. */
export interface FuzzArguments {
  readonly help: boolean;
  readonly requests: number;
  readonly seed: number;
  readonly services: readonly ServiceName[];
  /** Send just these requests of the run, one after the other, and show what was sent and answered; null: the whole run. */
  readonly only: readonly number[] | null;
  readonly concurrency: number;
  readonly build: boolean;
  readonly logLevel: string;
}

export const USAGE = `Usage: npm run fuzz [-- --requests <n>] [--seed <n>] [--service <name>] [--only <n>[,<n>…]]

Starts the built platform in production mode on servers of its own and sends it valid, nearly valid, malformed, random and hostile
requests to every operation of the OpenAPI documents. No answer may be 500 or above, missing, undocumented or telling a secret; no
hostile token may be accepted; no process may end or grow without bound. Ends with 1 when one of these happened.

  --requests <n>     how many (10000)
  --seed <n>         the same seed sends the same requests (random; printed)
  --service <name>   only this one's operations: auth, settings, task
  --only <n>[,…]     only these requests of the run; shows what was sent and answered
  --concurrency <n>  requests in flight (24)
  --log-level <l>    of the services (info)
  --no-build         test what was built before
  --help             this text`;

/** An error in the command line; the message is for the user. */
export class ArgumentsError extends Error {
  override readonly name = 'ArgumentsError';
}

/** @throws {ArgumentsError} for anything that is not in USAGE @param randomSeed used when none is named */
export function parseFuzzArguments(args: readonly string[], randomSeed: number): FuzzArguments {
  const values = parse(args);
  return {
    help: values.help ?? false,
    requests: wholeNumber('--requests', values.requests ?? '10000'),
    seed: wholeNumber('--seed', values.seed ?? String(randomSeed)),
    services: parseService(values.service),
    only: values.only?.split(',').map((text) => wholeNumber('--only', text)) ?? null,
    concurrency: wholeNumber('--concurrency', values.concurrency ?? '24'),
    build: values['no-build'] !== true,
    logLevel: values['log-level'] ?? 'info',
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        help: { type: 'boolean', short: 'h' },
        requests: { type: 'string' },
        seed: { type: 'string' },
        service: { type: 'string' },
        only: { type: 'string' },
        concurrency: { type: 'string' },
        'log-level': { type: 'string' },
        'no-build': { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ArgumentsError(`${message.split('. ')[0] ?? message}. See npm run fuzz -- --help`, {
      cause: error,
    });
  }
}

function wholeNumber(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new ArgumentsError(`${flag} takes a whole number, not "${text}"`);
  return Number(text);
}

function parseService(name: string | undefined): readonly ServiceName[] {
  const names = SERVICES.map(({ service }) => service);
  if (name === undefined) return names;
  const chosen = names.filter((service) => service === name);
  if (chosen.length === 0)
    throw new ArgumentsError(`--service takes one of: ${names.join(', ')}; not "${name}"`);
  return chosen;
}
