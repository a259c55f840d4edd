import { ArgumentsError, commandLine, someOf, wholeNumber } from '#platform/command-line.ts';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { Random } from '#platform/random.ts';
import { seconds } from '../report.ts';

/** The name of one of the two replicas of a service. */
export interface ReplicaName {
  readonly service: ServiceName;
  readonly letter: 'a' | 'b';
}

export type Dependency = 'database' | 'broker' | 'auth';

/** The two replicas of every service. */
export const REPLICA_NAMES: readonly ReplicaName[] = SERVICE_NAMES.flatMap((service) =>
  (['a', 'b'] as const).map((letter) => ({ service, letter })),
);

/** The servers that each service connects to. */
export const DEPENDENCIES: Readonly<Record<ServiceName, readonly Dependency[]>> = {
  auth: ['database'],
  settings: ['database', 'auth'],
  task: ['database', 'broker', 'auth'],
};

/**
 * The target of a fault: one replica, both replicas of a service in turn, connections to a dependency, or a
 * server that all replicas share.
 */
type Target = 'replica' | 'service' | 'connections' | 'server';

/**
 * Every fault, with its target and its minimum and maximum duration in ms. A replica may be frozen for longer
 * than AMQP heartbeats (two of 5 s) and than the timeout of a statement (12 s).
 */
const FAULTS = {
  'kill-replica': ['replica', 0, 0],
  'kill-starved-replica': ['replica', 1_500, 4_000],
  'freeze-replica': ['replica', 4_000, 25_000],
  'rolling-restart': ['service', 0, 0],
  'broker-restart': ['server', 500, 4_000],
  'broker-kill': ['server', 500, 4_000],
  'broker-memory-alarm': ['server', 4_000, 8_000],
  'broker-disk-alarm': ['server', 4_000, 8_000],
  'database-restart': ['server', 500, 4_000],
  'database-kill': ['server', 500, 4_000],
  'database-freeze': ['server', 4_000, 15_000],
  'database-read-only': ['server', 3_000, 8_000],
  'reset-connections': ['connections', 1_000, 4_000],
  'black-hole': ['connections', 4_000, 18_000],
  'half-open': ['connections', 4_000, 12_000],
  'broker-node-kill': ['server', 5_000, 10_000],
  'broker-node-freeze': ['server', 25_000, 25_000],
  'broker-machine-partition': ['server', 10_000, 25_000],
  'broker-disk-full': ['server', 8_000, 12_000],
  'postmaster-kill': ['server', 0, 0],
  'database-node-kill': ['server', 25_000, 30_000],
  'database-node-freeze': ['server', 25_000, 30_000],
  'database-machine-partition': ['server', 25_000, 35_000],
  'database-disk-full': ['server', 10_000, 15_000],
  'etcd-leader-kill': ['server', 5_000, 10_000],
  'machine-kill': ['server', 5_000, 25_000],
  'machine-freeze': ['server', 25_000, 25_000],
  'majority-loss': ['server', 20_000, 30_000],
  'machine-clock-step': ['server', 8_000, 15_000],
  'replica-clock-step': ['replica', 8_000, 15_000],
  upgrade: ['service', 0, 0],
  'roll-back': ['service', 0, 0],
  calm: ['server', 8_000, 8_000],
  'expired-rows': ['server', 0, 0],
} as const satisfies Record<string, readonly [Target, number, number]>;
export type FaultKind = keyof typeof FAULTS;
const KINDS = Object.keys(FAULTS) as readonly FaultKind[];
const FIRST_OF_CLUSTER = KINDS.indexOf('broker-node-kill');
const END_OF_CLUSTER = KINDS.indexOf('upgrade');
/** Kinds that break nothing. They are planned only if `--faults` names them. */
const HARMLESS_KINDS = ['calm', 'expired-rows'] as const satisfies readonly FaultKind[];
/** The default kinds on one machine. */
export const FAULT_KINDS = KINDS.slice(0, FIRST_OF_CLUSTER);
/** The default kinds on three machines. They break the network itself, because there are no proxies. */
export const CLUSTER_FAULT_KINDS: readonly FaultKind[] = [
  ...(['kill-replica', 'kill-starved-replica', 'freeze-replica', 'rolling-restart'] as const),
  ...KINDS.slice(FIRST_OF_CLUSTER, END_OF_CLUSTER),
];

/** One fault of a run, with all its random choices. */
export interface PlannedFault {
  readonly round: number;
  readonly kind: FaultKind;
  readonly replica: ReplicaName;
  /** The server whose connections a network fault breaks. */
  readonly dependency: Dependency;
  /** For network faults. True: hits all replicas that use `dependency`. False: hits only `replica`. */
  readonly everywhere: boolean;
  readonly lastsMs: number;
}

/**
 * Plans the faults of a run. Every kind comes once before any repeats, and each kind hits all services before
 * it hits one again, so a short run covers much. The seed decides order, targets and durations.
 */
export function planFaults(
  seed: number,
  rounds: number,
  kinds: readonly FaultKind[] = FAULT_KINDS,
): PlannedFault[] {
  const random = new Random(seed);
  const faults: PlannedFault[] = [];
  const hits = new Map<FaultKind, ServiceName[]>();
  while (faults.length < rounds) {
    for (const kind of random.shuffled(kinds)) {
      if (faults.length === rounds) break;
      let waiting = hits.get(kind) ?? [];
      if (waiting.length === 0) waiting = random.shuffled(SERVICE_NAMES);
      const [service = 'task', ...others] = waiting;
      hits.set(kind, others);
      const [, least, most] = FAULTS[kind];
      faults.push({
        round: faults.length + 1,
        kind,
        replica: { service, letter: random.pick(['a', 'b'] as const) },
        dependency: random.pick(DEPENDENCIES[service]),
        everywhere: random.chance(0.4),
        lastsMs: random.integer(least, most),
      });
    }
  }
  return faults;
}

/**
 * Plans the upgrade of every service, then its roll-back. The seed decides the order: no order is prescribed.
 */
export function planUpgrade(seed: number): PlannedFault[] {
  const random = new Random(seed);
  const kinds = ['upgrade', 'roll-back'] as const;
  const rounds = kinds.flatMap((kind) =>
    random.shuffled(SERVICE_NAMES).map((service) => ({ kind, service })),
  );
  return rounds.map(({ kind, service }, index) => ({
    round: index + 1,
    kind,
    replica: { service, letter: 'a' },
    dependency: 'database',
    everywhere: false,
    lastsMs: 0,
  }));
}

/** Describes a fault for progress lines and results. */
export function describeFault({ kind, replica, dependency, everywhere, lastsMs }: PlannedFault): string {
  const label = labelOf(replica);
  const targets: Readonly<Record<Target, string>> = {
    replica: ` ${label}`,
    service: ` of ${replica.service}-service`,
    connections: ` ${everywhere ? 'everybody' : label} ↔ ${dependency}`,
    server: '',
  };
  return `${kind}${targets[FAULTS[kind][0]]}${lastsMs === 0 ? '' : ` ${seconds(lastsMs)}`}`;
}

/** E.g. `task-b`. */
export function labelOf({ service, letter }: ReplicaName): string {
  return `${service}-${letter}`;
}

/** The flags that repeat the rounds. @param all the default kinds, which need no flag */
export function roundFlags(
  { rounds, faults }: Pick<ChaosArguments, 'rounds' | 'faults'>,
  all: readonly FaultKind[],
): string {
  return `--rounds ${rounds}${faults === all ? '' : ` --faults ${faults.join(',')}`}`;
}

/** The command line of `npm run chaos`. */
export interface ChaosArguments {
  readonly rounds: number;
  readonly seed: number;
  readonly faults: readonly FaultKind[];
  /** The folder of the build under test. */
  readonly dist: string;
  /** The commit of a release. Instead of faults, the run upgrades it to this build and rolls it back. */
  readonly upgradeFrom?: string;
  /** True: a Prometheus scrapes the run. A folder: the dashboards are also drawn there. */
  readonly prometheus?: true | string;
  /** Three machines with clustered servers instead of one server of each kind. */
  readonly cluster?: true;
  /** Half of the replicas reach PostgreSQL through a PgBouncer. */
  readonly pooler?: true;
}

const EVERY_KIND = [...new Set([...FAULT_KINDS, ...CLUSTER_FAULT_KINDS, ...HARMLESS_KINDS])];
const DESCRIPTION =
  'Starts PostgreSQL, RabbitMQ and two replicas of each service, breaks them while callers use them, and compares what was ' +
  'acknowledged with what was stored and published. Exits with 1 if anything was lost, done twice, out of order or got a wrong response.';

/**
 * Parses the command line.
 * @throws {ArgumentsError} for an unknown flag, an invalid value or an invalid combination
 * @param randomSeed used without --seed
 */
export function parseChaosArguments(args: readonly string[], randomSeed: number): ChaosArguments {
  const given = commandLine('npm run chaos', '[-- flags]', DESCRIPTION)
    .option('--rounds <number>', 'number of faults, injected one after the other', wholeNumber, 17)
    .option(
      '--seed <number>',
      'decides order, targets and durations of the faults, and the load (random)',
      wholeNumber,
    )
    .option(
      '--faults <a,b>',
      `injects only these: ${[...FAULT_KINDS, ...HARMLESS_KINDS].join(', ')}`,
      someOf(EVERY_KIND),
    )
    .option('--dist <folder>', 'folder of the build', 'dist')
    .option(
      '--upgrade-from <commit>',
      'injects no faults; starts this release, migrates, rolls each service to the present build and back',
    )
    .option(
      '--cluster',
      `starts three machines with RabbitMQ, PostgreSQL and etcd each (Linux, root); injects ${CLUSTER_FAULT_KINDS.join(', ')}`,
    )
    .option('--pooler', 'with --cluster: replicas "a" connect to PostgreSQL through a PgBouncer')
    .option(
      '--prometheus [folder]',
      'starts a Prometheus and audits dashboards and alert rules; draws the dashboards into the folder, if there is one',
    )
    .parse(args, { from: 'user' })
    .opts<Omit<ChaosArguments, 'faults' | 'seed'> & Partial<Pick<ChaosArguments, 'faults' | 'seed'>>>();
  const { faults = given.cluster === true ? CLUSTER_FAULT_KINDS : FAULT_KINDS } = given;
  checkCombination({ ...given, faults });
  return { seed: randomSeed, ...given, faults };
}

/** @throws {ArgumentsError} for flags that do not go together */
function checkCombination(given: Omit<ChaosArguments, 'seed'>): void {
  const known = given.cluster === true ? CLUSTER_FAULT_KINDS : FAULT_KINDS;
  const possible: readonly FaultKind[] = [...known, ...HARMLESS_KINDS];
  const impossible = given.faults.filter((kind) => !possible.includes(kind));
  if (impossible.length > 0)
    throw new ArgumentsError(
      `${impossible.join(', ')}: ${given.cluster === true ? 'not' : 'only'} with --cluster.`,
    );
  if (given.cluster === true && given.upgradeFrom !== undefined)
    throw new ArgumentsError('Use either --cluster or --upgrade-from.');
  if (given.pooler === true && given.cluster !== true) throw new ArgumentsError('--pooler needs --cluster.');
}
