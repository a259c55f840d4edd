import { parseArgs } from 'node:util';

/** What `npm run bench` was asked for. */
export interface BenchArguments {
  readonly help: boolean;
  readonly list: boolean;
  /** Empty: all. */
  readonly ids: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  /** Write docs/benchmarks.md: only a run of all benchmarks does. */
  readonly write: boolean;
  /** Folder for CPU profiles of everything under measurement, or null. */
  readonly profile: string | null;
}

export const USAGE = `Usage: npm run bench [-- <id> …] [--rounds <n>] [--seconds <n>]

Measures the platform's production build against peers and bare limits, side by side, on a private PostgreSQL and RabbitMQ.
Without ids: everything, and docs/benchmarks.md with its charts is written anew.

  --rounds <n>    alternating rounds of each contestant (7)
  --seconds <n>   length of a round (5)
  --profile <dir> write a CPU profile of every program under measurement there
  --no-write      leave docs/benchmarks.md as it is
  --list          print the ids
  --help`;

export class ArgumentsError extends Error {
  override readonly name = 'ArgumentsError';
}

/** @throws {ArgumentsError} for anything that is not in USAGE */
export function parseBenchArguments(args: readonly string[], knownIds: readonly string[]): BenchArguments {
  const { values, positionals } = parse(args);
  const unknown = positionals.filter((id) => !knownIds.includes(id));
  if (unknown.length > 0) {
    throw new ArgumentsError(
      `There is no benchmark ${unknown.join(', ')}. There are: ${knownIds.join(', ')}`,
    );
  }
  return {
    help: values.help,
    list: values.list,
    ids: positionals,
    rounds: positive('rounds', values.rounds),
    seconds: positive('seconds', values.seconds),
    profile: values.profile ?? null,
    write: positionals.length === 0 && !values['no-write'] && values.profile === undefined,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        help: { type: 'boolean', default: false },
        list: { type: 'boolean', default: false },
        'no-write': { type: 'boolean', default: false },
        profile: { type: 'string' },
        rounds: { type: 'string', default: '7' },
        seconds: { type: 'string', default: '5' },
      },
    });
  } catch (error) {
    // parseArgs says what is wrong with which argument, as a TypeError.
    throw new ArgumentsError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 1_000))
    throw new ArgumentsError(`--${name} must be between 0 and 1000, not ${text}`);
  return value;
}
