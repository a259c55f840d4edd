import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { Random } from '#platform/random.ts';

/** One of the two processes of a service. */
export interface ReplicaName {
  readonly service: ServiceName;
  readonly letter: 'a' | 'b';
}

export type Dependency = 'database' | 'broker' | 'auth';

/** Everything that can be done to the platform, in the words of the report. */
export const FAULT_KINDS = [
  'kill-replica',
  'kill-starved-replica',
  'freeze-replica',
  'rolling-restart',
  'broker-restart',
  'broker-kill',
  'broker-memory-alarm',
  'broker-disk-alarm',
  'database-restart',
  'database-kill',
  'database-freeze',
  'database-read-only',
  'reset-connections',
  'black-hole',
  'half-open',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** One fault of a run, with everything that chance decides about it. */
export interface PlannedFault {
  readonly round: number;
  readonly kind: FaultKind;
  /** The replica that a fault of one process hits. */
  readonly replica: ReplicaName;
  /** What a fault of the network comes between the replica, or all replicas, and. */
  readonly dependency: Dependency;
  /** Network faults: true hits every replica of every service, false only `replica`. */
  readonly everywhere: boolean;
  /** How long the fault lasts where it has a length, in ms. */
  readonly lastsMs: number;
}

/** Which servers each service talks to. */
const DEPENDENCIES: Readonly<Record<ServiceName, readonly Dependency[]>> = {
  auth: ['database'],
  settings: ['database', 'auth'],
  task: ['database', 'broker', 'auth'],
};

/** Lengths in ms. A frozen replica outlives heartbeats (twice 5 s) and, at its longest, the wait for a statement's answer (12 s). */
const LENGTHS_MS: Readonly<Partial<Record<FaultKind, readonly [number, number]>>> = {
  'kill-starved-replica': [1_500, 4_000],
  'freeze-replica': [4_000, 25_000],
  'broker-restart': [500, 4_000],
  'broker-kill': [500, 4_000],
  'broker-memory-alarm': [4_000, 8_000],
  'broker-disk-alarm': [4_000, 8_000],
  'database-restart': [500, 4_000],
  'database-kill': [500, 4_000],
  'database-freeze': [4_000, 15_000],
  'database-read-only': [3_000, 8_000],
  'reset-connections': [1_000, 4_000],
  'black-hole': [4_000, 18_000],
  'half-open': [4_000, 12_000],
};

/**
 * The faults of a run. Each kind comes once before any comes again, and each kind goes through the services in turn, so that a short
 * run covers much; order, targets and lengths are the seed's.
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
      faults.push(planFault(random, { round: faults.length + 1, kind, service }));
    }
  }
  return faults;
}

function planFault(
  random: Random,
  { round, kind, service }: { round: number; kind: FaultKind; service: ServiceName },
): PlannedFault {
  const [least, most] = LENGTHS_MS[kind] ?? [0, 0];
  return {
    round,
    kind,
    replica: { service, letter: random.pick(['a', 'b'] as const) },
    dependency: random.pick(DEPENDENCIES[service]),
    everywhere: random.chance(0.4),
    lastsMs: random.integer(least, most),
  };
}

/** The fault in words, for progress lines and results. */
export function describeFault({ kind, replica, dependency, everywhere, lastsMs }: PlannedFault): string {
  const seconds = lastsMs === 0 ? '' : ` ${(lastsMs / 1000).toFixed(1)} s`;
  const who = `${replica.service}-${replica.letter}`;
  switch (kind) {
    case 'kill-replica':
    case 'kill-starved-replica':
    case 'freeze-replica':
      return `${kind} ${who}${seconds}`;
    case 'rolling-restart':
      return `${kind} of ${replica.service}-service`;
    case 'reset-connections':
    case 'black-hole':
    case 'half-open':
      return `${kind} ${everywhere ? 'everybody' : who} ↔ ${dependency}${seconds}`;
    case 'broker-restart':
    case 'broker-kill':
    case 'broker-memory-alarm':
    case 'broker-disk-alarm':
    case 'database-restart':
    case 'database-kill':
    case 'database-freeze':
    case 'database-read-only':
      return `${kind}${seconds}`;
  }
}
