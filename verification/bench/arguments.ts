import { InvalidArgumentError } from 'commander';
import { commandLine } from '#platform/command-line.ts';

/** The command line of `npm run bench`. */
export interface BenchArguments {
  readonly list: boolean;
  /** Empty: all. */
  readonly ids: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  /** True: writes docs/performance.md. Only a full run of all benchmarks does. */
  readonly write: boolean;
  /** Folder for CPU profiles of the programs under measurement. Null: no profiles. */
  readonly profile: string | null;
}

const DESCRIPTION =
  "Measures the platform's production build against peers and bare limits, side by side, on a private PostgreSQL and RabbitMQ. " +
  'Without ids it runs all benchmarks and rewrites docs/performance.md with its charts.';

/** Parses the command line. @throws {ArgumentsError} for an unknown flag or id, or an invalid value */
export function parseBenchArguments(args: readonly string[], knownIds: readonly string[]): BenchArguments {
  const parseId = (id: string, ids: readonly string[] = []): string[] => {
    if (!knownIds.includes(id)) throw new InvalidArgumentError(`Known ids: ${knownIds.join(', ')}.`);
    return [...ids, id];
  };
  const command = commandLine('npm run bench', '[-- <id> …] [flags]', DESCRIPTION)
    .argument('[id...]', 'only these benchmarks', parseId, [])
    .option('--rounds <number>', 'alternating rounds of each contestant', positive, 7)
    .option('--seconds <number>', 'length of a round', positive, 3)
    .option('--quick', 'one round of half a second, without a warm-up; does not write docs', false)
    .option('--profile <folder>', 'write a CPU profile of every program under measurement into this folder')
    .option('--no-write', 'do not change docs/performance.md')
    .option('--list', 'print the ids', false)
    .parse(args, { from: 'user' });
  const [ids] = command.processedArgs as [string[]];
  const {
    quick,
    profile = null,
    write,
    ...flags
  } = command.opts<Omit<BenchArguments, 'ids'> & { quick: boolean }>();
  const length = quick ? { rounds: 1, seconds: 0.5 } : {};
  return {
    ...flags,
    ...length,
    ids,
    profile,
    write: write && !quick && ids.length === 0 && profile === null,
  };
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 1_000)) throw new InvalidArgumentError('It must be between 0 and 1000.');
  return value;
}
