import { setTimeout as delay } from 'node:timers/promises';
import { queryAt } from '#platform/postgresql.ts';
import { trySignal } from '#platform/processes.ts';
import { eventually } from '#platform/waiting.ts';
import type { Load } from '#verification/traffic/load.ts';
import type { Engine, Engines } from './engines/engines.ts';
import { type Machine, MACHINES } from './engines/namespaces.ts';
import type { PlannedFault } from './plan.ts';
import type { Testbed } from './testbed.ts';

/** The context of a fault injection. */
export interface FaultContext {
  readonly testbed: Testbed;
  readonly load: Load;
  readonly fault: PlannedFault;
}

/** The effect of a fault that was observed from outside, in words, for the results. */
export type Proof = string;

/**
 * Injects a fault and reverts it. Resolves when only the platform's own recovery remains.
 * @throws if the fault's effect could not be observed
 */
export type Injector = (context: FaultContext) => Promise<Proof>;

const FAILOVER_LIMIT_MS = 30_000;
const MACHINE_STEP_S = 60;
/** Less than 30 s, the clock difference that services tolerate when they validate tokens. */
const REPLICA_STEP_S = 20;
const STEP_TOLERANCE_MS = 5_000;
const STANDBYS_REPLIED =
  'SELECT count(*)::int AS replied FROM pg_stat_replication WHERE reply_time > to_timestamp($1::float8 / 1000)';

/** Chooses the machine that a fault hits. */
type Choice = (engines: Engines, context: FaultContext) => Promise<Machine>;
const databaseLeader: Choice = (engines) => engines.databaseLeader();
const brokerLeader: Choice = (engines) => engines.brokers.leader();
const etcdLeader: Choice = (engines) => engines.etcdLeader();
/** Each machine in turn, leader or not. */
const anyMachine: Choice = (_engines, { fault }) =>
  Promise.resolve(MACHINES[fault.round % MACHINES.length] ?? 1);

/** Faults of clustered servers on three machines. */
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
  return async (context) => {
    const all = context.testbed.engines;
    const machine = await choose(all, context);
    const count = await all.kill(machine, engines);
    if (count === 0) throw new Error(`nothing was running on m${machine}`);
    await delay(context.fault.lastsMs);
    for (const engine of engines) await all.start(machine, engine);
    return `${count} processes of m${machine} were killed`;
  };
}

function freezeEngines(choose: Choice, engines: readonly Engine[]): Injector {
  return async (context) => {
    const { testbed, fault } = context;
    const machine = await choose(testbed.engines, context);
    const count = testbed.freeze(testbed.engines.processes(machine, engines));
    if (count === 0) throw new Error(`nothing was running on m${machine}`);
    await delay(fault.lastsMs);
    testbed.thaw();
    return `${count} processes of m${machine} were frozen`;
  };
}

function partition(choose: Choice): Injector {
  return async (context) => {
    const { engines } = context.testbed;
    const machine = await choose(engines, context);
    await engines.connect(machine, false);
    try {
      await delay(context.fault.lastsMs);
    } finally {
      await engines.connect(machine, true);
    }
    return `m${machine} was cut off`;
  };
}

function fillDisk(choose: Choice, engine: Engine): Injector {
  return async (context) => {
    const { engines } = context.testbed;
    const machine = await choose(engines, context);
    try {
      await engines.fillDisk(machine, engine);
      await delay(context.fault.lastsMs);
    } finally {
      await engines.clearDisk(machine, engine);
    }
    if (engine === 'broker') {
      // The node reports that it is running, but its queue members have stopped and do not restart.
      await engines.kill(machine, [engine]);
      await engines.start(machine, engine);
      const recreated = await engines.brokers.recreateMembers(machine);
      return `the disk of m${machine} was full; ${recreated} queue members were recreated`;
    }
    return `the disk of m${machine} was full`;
  };
}

async function killPostmaster({ testbed: { engines } }: FaultContext): Promise<Proof> {
  const machine = await engines.databaseLeader();
  const postmaster = engines.postmaster(machine);
  if (!trySignal(postmaster, 'SIGKILL')) throw new Error('there was no postmaster');
  const next = await eventually(
    async () => {
      const leader = await engines.databaseLeader();
      // If no standby can be promoted, Patroni restarts the same primary.
      if (leader === machine && engines.postmaster(machine) === postmaster)
        throw new Error(`m${machine} stayed the primary`);
      return leader;
    },
    { timeoutMs: FAILOVER_LIMIT_MS, intervalMs: 100 },
  );
  return `m${next} followed m${machine} as the primary`;
}

/** Kills two of three machines at once. Nothing may be acknowledged until they are back. */
async function loseMajority(context: FaultContext): Promise<Proof> {
  const { engines } = context.testbed;
  const { journal, traffic } = context.load;
  const survivor = await anyMachine(engines, context);
  const lost = MACHINES.filter((machine) => machine !== survivor);
  await Promise.all(lost.map((machine) => engines.kill(machine)));
  const aloneSinceMs = performance.now();
  await delay(context.fault.lastsMs);
  const acknowledged = traffic.writesBegunAtMs.filter((atMs) => atMs > aloneSinceMs).length;
  if (acknowledged > 0)
    journal.violations.push(`${acknowledged} writes were acknowledged by m${survivor} alone`);
  for (const machine of lost)
    for (const engine of ['etcd', 'database', 'broker'] as const) await engines.start(machine, engine);
  return `m${survivor} was alone and acknowledged ${acknowledged} writes`;
}

/** Steps the clock of the primary's machine by 60 s, ahead or back, then to the true time again. */
async function stepMachineClock({ testbed: { engines }, load, fault }: FaultContext): Promise<Proof> {
  const machine = await engines.databaseLeader();
  const offsetS = signOf(fault) * MACHINE_STEP_S;
  const proof = await whileStepped(
    { label: `m${machine}`, offsetS, lastsMs: fault.lastsMs },
    (seconds) => {
      load.journal.clockStepsAtMs.push(performance.now());
      engines.stepClock(machine, seconds);
    },
    () => engines.databaseTimeMs(),
  );
  await untilStandbysReply(engines, Date.now());
  return proof;
}

/**
 * Waits until all standbys have replied since `sinceMs`. When the primary's clock jumps ahead, the primary
 * ends each replication stream whose last reply is too old by the new time. A stream on which the standby has
 * replied after the jump stays.
 */
async function untilStandbysReply(engines: Engines, sinceMs: number): Promise<void> {
  const expectReplies = async (): Promise<void> => {
    const statement = [STANDBYS_REPLIED, [sinceMs]] as const;
    const [row] = await queryAt<{ replied: number }>(engines.databaseUrl, statement);
    if (row?.replied !== MACHINES.length - 1) throw new Error(`${row?.replied ?? 0} standbys have replied`);
  };
  await eventually(expectReplies, { timeoutMs: FAILOVER_LIMIT_MS, intervalMs: 100 });
}

async function stepReplicaClock({ testbed, fault }: FaultContext): Promise<Proof> {
  const { label, program } = testbed.replica(fault.replica);
  const offsetS = signOf(fault) * REPLICA_STEP_S;
  return whileStepped(
    { label, offsetS, lastsMs: fault.lastsMs },
    (seconds) => testbed.stepClock(fault.replica, seconds),
    async () => {
      const response = await fetch(`${program.url}/health/live`);
      return Date.parse(response.headers.get('date') ?? '');
    },
  );
}

function signOf({ round }: PlannedFault): 1 | -1 {
  return round % 2 === 0 ? 1 : -1;
}

/** Steps a clock for a while. @throws {Error} if the process does not show the stepped time at the end */
async function whileStepped(
  { label, offsetS, lastsMs }: { label: string; offsetS: number; lastsMs: number },
  step: (offsetS: number) => void,
  timeMs: () => Promise<number>,
): Promise<Proof> {
  step(offsetS);
  try {
    await delay(lastsMs);
    const aheadMs = (await timeMs()) - Date.now();
    if (!(Math.abs(aheadMs - offsetS * 1_000) < STEP_TOLERANCE_MS))
      throw new Error(`the clock of ${label} was ${aheadMs} ms ahead instead of ${offsetS} s`);
    return `the clock of ${label} was ${offsetS} s ahead`;
  } finally {
    step(0);
  }
}
