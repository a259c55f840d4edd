import { InvalidArgumentError } from 'commander';
import { commandLine } from '#platform/command-line.ts';

/** What `npm run bench` was asked for. */
export interface BenchArguments {
  readonly list: boolean;
  /** Empty: all. */
  readonly ids: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  /** Write docs/performance.md: only a run of all benchmarks does. */
  readonly write: boolean;
  /** Folder for CPU profiles of everything under measurement, or null. */
  readonly profile: string | null;
}

const DESCRIPTION =
  "Measures the platform's production build against peers and bare limits, side by side, on a private PostgreSQL and RabbitMQ. " +
  'Without ids: everything, and docs/performance.md with its charts is written anew.';

/** @throws {ArgumentsError} for a flag or an id that there is not, and for an impossible value */
export function parseBenchArguments(args: readonly string[], knownIds: readonly string[]): BenchArguments {
  const parseId = (id: string, ids: readonly string[] = []): string[] => {
    if (!knownIds.includes(id)) throw new InvalidArgumentError(`There are: ${knownIds.join(', ')}.`);
    return [...ids, id];
  };
  const command = commandLine('npm run bench', '[-- <id> …] [flags]', DESCRIPTION)
    .argument('[id...]', 'only these benchmarks', parseId, [])
    .option('--rounds <number>', 'alternating rounds of each contestant', positive, 7)
    .option('--seconds <number>', 'length of a round', positive, 3)
    .option('--quick', 'one round of half a second each without a warm-up, for a look; writes nothing', false)
    .option('--profile <folder>', 'write a CPU profile of every program under measurement there')
    .option('--no-write', 'leave docs/performance.md as it is')
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
