import { InvalidArgumentError } from 'commander';
import { ArgumentsError, commandLine, someOf, wholeNumber } from '#platform/command-line.ts';
import { CLUSTER_FAULT_KINDS, FAULT_KINDS, type FaultKind } from './plan.ts';

/** What the command line of `npm run chaos` says. */
export interface ChaosArguments {
  readonly rounds: number;
  readonly seed: number;
  readonly faults: readonly FaultKind[];
  /** No round begins later than this after the first. */
  readonly durationMs: number;
  /** The folder of the build under test. */
  readonly dist: string;
  /** The commit of a release: instead of being broken, a platform of it is upgraded to this build and rolled back. */
  readonly upgradeFrom?: string;
  /** Has a Prometheus watch; a folder: and its dashboards drawn there. */
  readonly prometheus?: true | string;
  /** Three machines with clustered servers instead of one server of each kind. */
  readonly cluster?: true;
}

const EVERY_KIND = [...new Set([...FAULT_KINDS, ...CLUSTER_FAULT_KINDS])];
const DESCRIPTION =
  'Starts PostgreSQL, RabbitMQ and two replicas of each service, breaks them while callers use them, and compares what was ' +
  'acknowledged with what is there. Ends with 1 when anything was lost, done twice, out of order or got a wrong response.';

/** @throws {ArgumentsError} on an unknown flag or an impossible value. @param randomSeed used when none is named */
export function parseChaosArguments(args: readonly string[], randomSeed: number): ChaosArguments {
  const { duration = 30 * 60_000, ...given } = commandLine('npm run chaos', '[-- flags]', DESCRIPTION)
    .option('--rounds <number>', 'faults, one after the other', wholeNumber, 17)
    .option(
      '--seed <number>',
      'which faults, where, for how long, and what the load does (random)',
      wholeNumber,
    )
    .option('--faults <a,b>', `only these: ${FAULT_KINDS.join(', ')}`, someOf(EVERY_KIND))
    .option('--duration <time>', 'begins no round after this, e.g. 90s or 20m (30m)', parseDuration)
    .option('--dist <folder>', 'another build', 'dist')
    .option(
      '--upgrade-from <commit>',
      'no faults: starts this release, migrates, rolls each service to the present build and back',
    )
    .option(
      '--cluster',
      `three machines with RabbitMQ, PostgreSQL and etcd each (Linux, root), and faults of ${CLUSTER_FAULT_KINDS.join(', ')}`,
    )
    .option(
      '--prometheus [folder]',
      'has a Prometheus watch, and audits dashboards and alert rules; draws the dashboards where a folder is named',
    )
    .parse(args, { from: 'user' })
    .opts<
      Omit<ChaosArguments, 'durationMs' | 'seed' | 'faults'> &
        Partial<Pick<ChaosArguments, 'faults' | 'seed'>> & { duration?: number }
    >();
  const known = given.cluster === true ? CLUSTER_FAULT_KINDS : FAULT_KINDS;
  const { faults = known } = given;
  const impossible = faults.filter((kind) => !known.includes(kind));
  if (impossible.length > 0)
    throw new ArgumentsError(
      `${impossible.join(', ')}: ${given.cluster === true ? 'not' : 'only'} with --cluster.`,
    );
  if (given.cluster === true && given.upgradeFrom !== undefined)
    throw new ArgumentsError('--cluster breaks servers and --upgrade-from breaks nothing: one of them.');
  return { seed: randomSeed, ...given, faults, durationMs: duration };
}

function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d{1,5})(s|m)$/.exec(text) ?? [];
  if (amount === undefined) throw new InvalidArgumentError('It must be a time such as 90s or 20m.');
  return Number(amount) * (unit === 'm' ? 60_000 : 1_000);
}
