import { setTimeout as delay } from 'node:timers/promises';
import { queryAt } from '#platform/postgresql.ts';
import { trySignal } from '#platform/processes.ts';
import { eventually } from '#platform/waiting.ts';
import type { Cluster } from '../cluster.ts';
import type { Load } from '#verification/traffic/load.ts';
import type { PlannedFault } from '../plan.ts';
import type { Engine, Engines } from './engines.ts';
import { type Machine, MACHINES } from './world.ts';

/** A fault, and what it is done to. */
export interface Scene {
  readonly cluster: Cluster;
  readonly load: Load;
  readonly fault: PlannedFault;
}

/** What was seen of a fault from outside, for the results. */
export type Proof = string;

/**
 * Does one fault and takes it back; resolves when only the platform's own recovery is left.
 * @throws when it did not take place
 */
export type Injector = (scene: Scene) => Promise<Proof>;

const FAILOVER_LIMIT_MS = 30_000;
const MACHINE_STEP_S = 60;
/** Less than the 30 s by which the clocks of services may differ when they look at each other's tokens. */
const REPLICA_STEP_S = 20;
const STEP_TOLERANCE_MS = 5_000;
const STANDBYS_REPLIED =
  'SELECT count(*)::int AS replied FROM pg_stat_replication WHERE reply_time > to_timestamp($1::float8 / 1000)';

type Choice = (engines: Engines, scene: Scene) => Promise<Machine>;
const databaseLeader: Choice = (engines) => engines.databaseLeader();
const brokerLeader: Choice = (engines) => engines.brokers.leader();
const etcdLeader: Choice = (engines) => engines.etcdLeader();
/** Each in turn, whatever it leads. */
const anyMachine: Choice = (_engines, { fault }) =>
  Promise.resolve(MACHINES[fault.round % MACHINES.length] ?? 1);

/** Faults of the servers of three machines. */
export const ENGINE_FAULTS = {
  'broker-node-kill': killEngines(brokerLeader, ['broker']),
  'broker-node-freeze': freezeEngines(brokerLeader, ['broker']),
  'broker-machine-partition': partition(brokerLeader),
  'broker-disk-full': fillDisk(brokerLeader, 'broker'),
  'postmaster-kill': killPostmaster,
  'database-node-kill': killEngines(databaseLeader, ['database']),
  'database-node-freeze': freezeEngines(databaseLeader, ['database']),
  'database-machine-partition': partition(databaseLeader),
  'database-disk-full': fillDisk(databaseLeader, 'database'),
  'etcd-leader-kill': killEngines(etcdLeader, ['etcd']),
  'machine-kill': killEngines(anyMachine, ['database', 'broker', 'etcd']),
  'machine-freeze': freezeEngines(anyMachine, ['database', 'broker', 'etcd']),
  'majority-loss': loseMajority,
  'machine-clock-step': stepMachineClock,
  'replica-clock-step': stepReplicaClock,
} as const satisfies Record<string, Injector>;

function killEngines(choose: Choice, engines: readonly Engine[]): Injector {
  return async (scene) => {
    const all = scene.cluster.engines;
    const machine = await choose(all, scene);
    const count = await all.kill(machine, engines);
    if (count === 0) throw new Error(`nothing ran on m${machine}`);
    await delay(scene.fault.lastsMs);
    for (const engine of engines) await all.start(machine, engine);
    return `${count} processes of m${machine} were killed`;
  };
}

function freezeEngines(choose: Choice, engines: readonly Engine[]): Injector {
  return async (scene) => {
    const { cluster, fault } = scene;
    const machine = await choose(cluster.engines, scene);
    const count = cluster.freeze(cluster.engines.processes(machine, engines));
    if (count === 0) throw new Error(`nothing ran on m${machine}`);
    await delay(fault.lastsMs);
    cluster.thaw();
    return `${count} processes of m${machine} stood still`;
  };
}

function partition(choose: Choice): Injector {
  return async (scene) => {
    const { engines } = scene.cluster;
    const machine = await choose(engines, scene);
    await engines.connect(machine, false);
    try {
      await delay(scene.fault.lastsMs);
    } finally {
      await engines.connect(machine, true);
    }
    return `m${machine} was cut off`;
  };
}

function fillDisk(choose: Choice, engine: Engine): Injector {
  return async (scene) => {
    const { engines } = scene.cluster;
    const machine = await choose(engines, scene);
    try {
      await engines.fillDisk(machine, engine);
      await delay(scene.fault.lastsMs);
    } finally {
      await engines.clearDisk(machine, engine);
    }
    if (engine === 'broker') {
      // Its queue members have ended for good, though the node says that it runs.
      await engines.kill(machine, [engine]);
      await engines.start(machine, engine);
      const remade = await engines.brokers.remakeMembers(machine);
      return `nothing was left of m${machine}'s disk; ${remade} members of queues were made anew`;
    }
    return `nothing was left of m${machine}'s disk`;
  };
}

async function killPostmaster({ cluster: { engines } }: Scene): Promise<Proof> {
  const machine = await engines.databaseLeader();
  const postmaster = engines.postmaster(machine);
  if (!trySignal(postmaster, 'SIGKILL')) throw new Error('there was no postmaster');
  const next = await eventually(
    async () => {
      const leader = await engines.databaseLeader();
      // Where no standby may follow just then, Patroni starts the same one again.
      if (leader === machine && engines.postmaster(machine) === postmaster)
        throw new Error(`m${machine} stayed the primary`);
      return leader;
    },
    { timeoutMs: FAILOVER_LIMIT_MS, intervalMs: 100 },
  );
  return `m${next} followed m${machine} as the primary`;
}

/** Of three machines two go at once: nothing may be acknowledged until they are back. */
async function loseMajority(scene: Scene): Promise<Proof> {
  const { engines } = scene.cluster;
  const { journal, traffic } = scene.load;
  const survivor = await anyMachine(engines, scene);
  const lost = MACHINES.filter((machine) => machine !== survivor);
  await Promise.all(lost.map((machine) => engines.kill(machine)));
  const aloneSinceMs = performance.now();
  await delay(scene.fault.lastsMs);
  const meanwhile = traffic.writesBegunAtMs.filter((atMs) => atMs > aloneSinceMs).length;
  if (meanwhile > 0) journal.violations.push(`${meanwhile} writes were acknowledged by m${survivor} alone`);
  for (const machine of lost)
    for (const engine of ['etcd', 'database', 'broker'] as const) await engines.start(machine, engine);
  return `m${survivor} was alone and acknowledged ${meanwhile} writes`;
}

/** The primary's machine jumps ahead or back, then to the true time again. */
async function stepMachineClock({ cluster: { engines }, load, fault }: Scene): Promise<Proof> {
  const machine = await engines.databaseLeader();
  const offsetS = signOf(fault) * MACHINE_STEP_S;
  const proof = await whileStepped(
    { who: `m${machine}`, offsetS, lastsMs: fault.lastsMs },
    (seconds) => {
      load.journal.clockStepsAtMs.push(performance.now());
      engines.stepClock(machine, seconds);
    },
    () => engines.databaseTimeMs(),
  );
  await untilStandbysReply(engines, Date.now());
  return proof;
}

/** A clock that jumps ahead ends streams to standbys whose last reply was long ago by its new time: at once,
 *  or not at all once they have
 *  replied again. */
async function untilStandbysReply(engines: Engines, sinceMs: number): Promise<void> {
  const expectReplies = async (): Promise<void> => {
    const statement = [STANDBYS_REPLIED, [sinceMs]] as const;
    const [row] = await queryAt<{ replied: number }>(engines.databaseUrl, statement);
    if (row?.replied !== MACHINES.length - 1) throw new Error(`${row?.replied ?? 0} standbys have replied`);
  };
  await eventually(expectReplies, { timeoutMs: FAILOVER_LIMIT_MS, intervalMs: 100 });
}

async function stepReplicaClock({ cluster, fault }: Scene): Promise<Proof> {
  const { label, program } = cluster.replica(fault.replica);
  const offsetS = signOf(fault) * REPLICA_STEP_S;
  return whileStepped(
    { who: label, offsetS, lastsMs: fault.lastsMs },
    (seconds) => cluster.stepClock(fault.replica, seconds),
    async () => {
      const response = await fetch(`${program.url}/health/live`);
      return Date.parse(response.headers.get('date') ?? '');
    },
  );
}

function signOf({ round }: PlannedFault): 1 | -1 {
  return round % 2 === 0 ? 1 : -1;
}

/** @throws {Error} when who was stepped does not tell that time at the end */
async function whileStepped(
  { who, offsetS, lastsMs }: { who: string; offsetS: number; lastsMs: number },
  step: (offsetS: number) => void,
  timeMs: () => Promise<number>,
): Promise<Proof> {
  step(offsetS);
  try {
    await delay(lastsMs);
    const aheadMs = (await timeMs()) - Date.now();
    if (!(Math.abs(aheadMs - offsetS * 1_000) < STEP_TOLERANCE_MS))
      throw new Error(`${who} was ${aheadMs} ms ahead instead of ${offsetS} s`);
    return `${who} was ${offsetS} s ahead`;
  } finally {
    step(0);
  }
}
