import { parseArgs } from 'node:util';
import { FAULT_KINDS, type FaultKind } from './plan.ts';

/** What the command line of `npm run chaos` says. */
export interface ChaosArguments {
  readonly rounds: number;
  readonly seed: number;
  readonly faults: readonly FaultKind[];
  /** No round begins later than this after the first. */
  readonly durationMs: number;
  /** The folder of the build under test. */
  readonly dist: string;
  readonly help: boolean;
}

const DEFAULT_ROUNDS = 17;
const DEFAULT_DURATION = '30m';

export const USAGE = `Usage: npm run chaos -- [flags]

Starts PostgreSQL, RabbitMQ and two replicas of each service, breaks them while callers use them, and compares what was acknowledged
with what is there. Ends with 1 when anything was lost, done twice, out of order or answered wrongly.

  --rounds <number>      faults, one after the other (${DEFAULT_ROUNDS})
  --seed <number>        which faults, where, for how long, and what the load does (random; printed)
  --faults <a,b>         only these: ${FAULT_KINDS.join(', ')}
  --duration <time>      begins no round after this, e.g. 90s or 20m (${DEFAULT_DURATION})
  --dist <folder>        another build (dist)
  --help                 this text`;

/** An error in the command line; the message is for the user. */
export class ArgumentsError extends Error {}

/** @throws {ArgumentsError} on an unknown flag or an impossible value. @param randomSeed used when none is named */
export function parseChaosArguments(args: readonly string[], randomSeed: number): ChaosArguments {
  const values = parseFlags(args);
  return {
    rounds: wholeNumber('--rounds', values['rounds'] ?? String(DEFAULT_ROUNDS)),
    seed: wholeNumber('--seed', values['seed'] ?? String(randomSeed)),
    faults: parseFaults(values['faults']),
    durationMs: parseDuration(values['duration'] ?? DEFAULT_DURATION),
    dist: values['dist'] ?? 'dist',
    help: values['help'] ?? false,
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        rounds: { type: 'string' },
        seed: { type: 'string' },
        faults: { type: 'string' },
        duration: { type: 'string' },
        dist: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ArgumentsError(`${message.split('. ')[0] ?? message}. See npm run chaos -- --help`, {
      cause: error,
    });
  }
}

function wholeNumber(flag: string, text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new ArgumentsError(`${flag} takes a whole number, not "${text}"`);
  return Number(text);
}

function parseFaults(list: string | undefined): readonly FaultKind[] {
  if (list === undefined) return FAULT_KINDS;
  return list.split(',').map((name) => {
    const kind = FAULT_KINDS.find((known) => known === name);
    if (kind === undefined)
      throw new ArgumentsError(`--faults takes some of: ${FAULT_KINDS.join(', ')}; not "${name}"`);
    return kind;
  });
}

function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d{1,5})(s|m)$/.exec(text) ?? [];
  if (amount === undefined) throw new ArgumentsError(`--duration takes 90s or 20m, not "${text}"`);
  return Number(amount) * (unit === 'm' ? 60_000 : 1_000);
}
