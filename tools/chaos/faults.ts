import { setTimeout as delay } from 'node:timers/promises';
import type { TcpProxy } from '#platform/tcp-proxy.ts';
import type { Cluster } from './cluster.ts';
import type { Load } from './load/load.ts';
import { createSchedule } from './load/tasks.ts';
import { REPLICA_NAMES } from './network.ts';
import type { FaultKind, PlannedFault } from './plan.ts';

/** What a fault is done to. */
interface Scene {
  readonly cluster: Cluster;
  readonly load: Load;
}

/** Proof that a fault took place, for the results: what was seen of it from outside. */
type Proof = string;

/** Does one fault and takes it back; resolves when only the platform's own recovery is left. @throws when it did not take place */
type Injector = (scene: Scene, fault: PlannedFault) => Promise<Proof>;

const RESTART_DELAY_MS = 500;

const INJECTORS: Readonly<Record<FaultKind, Injector>> = {
  'kill-replica': killReplica,
  'kill-starved-replica': killStarvedReplica,
  'freeze-replica': freezeReplica,
  'rolling-restart': rollingRestart,
  'broker-restart': restartBroker,
  'broker-kill': killBroker,
  'broker-memory-alarm': alarmBroker,
  'broker-disk-alarm': alarmBroker,
  'database-restart': restartDatabase,
  'database-kill': crashDatabase,
  'database-freeze': freezeDatabase,
  'database-read-only': makeDatabaseReadOnly,
  'reset-connections': resetConnections,
  'black-hole': blackHole,
  'half-open': halfOpen,
};

/** Does the fault. @throws {Error} when it could not be seen to take place */
export function injectFault(scene: Scene, fault: PlannedFault): Promise<Proof> {
  return INJECTORS[fault.kind](scene, fault);
}

async function killReplica({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const { label, program } = cluster.replica(fault.replica);
  program.signal('SIGKILL');
  const how = await program.process.ended;
  // What looks after processes notices after a moment.
  await delay(RESTART_DELAY_MS);
  await program.spawn();
  return `${label} ${how}`;
}

/** Without its database a replica takes on work and finishes none; then it dies with all of it in its hands. */
async function killStarvedReplica(scene: Scene, fault: PlannedFault): Promise<Proof> {
  const proxy = scene.cluster.network.proxy(fault.replica, 'database');
  proxy.freeze();
  await delay(fault.lastsMs);
  const count = proxy.connections;
  const killed = await killReplica(scene, fault);
  await proxy.restore();
  return `${killed} after ${proved(count, 'connections to its database stood still')}`;
}

async function freezeReplica({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const { label, program } = cluster.replica(fault.replica);
  program.signal('SIGSTOP');
  await delay(fault.lastsMs);
  const wasReady = await program.isReady();
  program.signal('SIGCONT');
  if (wasReady) throw new Error(`${label} answered while it was stopped`);
  return `${label} did not answer for ${fault.lastsMs} ms`;
}

/** Each replica in turn, as a rolling update: SIGTERM, wait for the end, a new process, wait until it is ready. */
async function rollingRestart({ cluster, load }: Scene, fault: PlannedFault): Promise<Proof> {
  const replicas = cluster.replicas.filter(({ name }) => name.service === fault.replica.service);
  load.traffic.isStrict = true;
  const before = load.traffic.attempts;
  try {
    for (const { label, program } of replicas) {
      const exitCode = await program.stop('SIGTERM');
      if (exitCode !== 0) throw new Error(`${label} ${await program.process.ended} after SIGTERM`);
      await program.start();
      // The balancers' next probe.
      await delay(RESTART_DELAY_MS);
    }
  } finally {
    load.traffic.isStrict = false;
  }
  return `${replicas.length} orderly ends, ${load.traffic.attempts - before} requests meanwhile`;
}

async function resetConnections({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const proxies = proxiesOf(cluster, fault);
  const endsAtMs = performance.now() + fault.lastsMs;
  let count = 0;
  do {
    count += proxies.reduce((sum, proxy) => sum + proxy.reset(), 0);
    await delay(250);
  } while (performance.now() < endsAtMs);
  return proved(count, 'connections reset');
}

async function blackHole({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const proxies = proxiesOf(cluster, fault);
  for (const proxy of proxies) proxy.freeze();
  await delay(fault.lastsMs);
  const count = proxies.reduce((sum, proxy) => sum + proxy.connections, 0);
  for (const proxy of proxies) await proxy.restore();
  return proved(count, 'connections stood still');
}

async function halfOpen({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const count = proxiesOf(cluster, fault).reduce((sum, proxy) => sum + proxy.halfOpen(), 0);
  await delay(fault.lastsMs);
  return proved(count, 'connections left half open');
}

function proxiesOf(cluster: Cluster, { everywhere, replica, dependency }: PlannedFault): TcpProxy[] {
  const names = everywhere
    ? REPLICA_NAMES.filter(({ service }) => dependency === 'database' || service !== 'auth').filter(
        ({ service }) => dependency !== 'broker' || service === 'task',
      )
    : [replica];
  return names.map((name) => cluster.network.proxy(name, dependency));
}

function proved(count: number, what: string): Proof {
  if (count === 0) throw new Error(`the fault hit nothing: 0 ${what}`);
  return `${count} ${what}`;
}

const ALARM_LIMIT_MS = 20_000;
const FIRST_DIRECT_FACILITY = 15_000;
const DIRECT_PATIENCE_MS = 20_000;

/** An orderly end and a new start on the same data. */
function restartBroker(scene: Scene, fault: PlannedFault): Promise<Proof> {
  return endBroker(scene, fault, 'SIGTERM');
}

function killBroker(scene: Scene, fault: PlannedFault): Promise<Proof> {
  return endBroker(scene, fault, 'SIGKILL');
}

async function endBroker(scene: Scene, fault: PlannedFault, signal: 'SIGTERM' | 'SIGKILL'): Promise<Proof> {
  const broker = scene.cluster.servers.rabbitmq;
  await broker.end(signal);
  const acknowledged = await createSchedulesDirectly(scene);
  await delay(fault.lastsMs);
  await broker.start();
  return `the broker ended on ${signal} and started again; ${acknowledged} schedules acknowledged meanwhile`;
}

/**
 * Schedules need no broker: their events wait in the outbox. Asked past the balancer, so that every replica is asked. Gives how many were
 * acknowledged.
 */
async function createSchedulesDirectly({ cluster, load }: Scene): Promise<number> {
  const { context, journal } = load;
  const replicas = cluster.replicas.filter(({ name }) => name.service === 'task');
  const created = await Promise.all(
    replicas.map(({ program }, index) => {
      const urls = { ...context.urls, task: program.url };
      return createSchedule({ ...context, urls }, FIRST_DIRECT_FACILITY + index, DIRECT_PATIENCE_MS);
    }),
  );
  const acknowledged = created.filter((scheduleId) => scheduleId !== null).length;
  if (acknowledged < replicas.length)
    journal.violations.push(
      `without the broker only ${acknowledged} of ${replicas.length} replicas acknowledged a schedule`,
    );
  return acknowledged;
}

interface Alarm {
  readonly raise: readonly string[];
  readonly clear: readonly string[];
  /** Its name in the broker's own account. */
  readonly member: 'mem_alarm' | 'disk_free_alarm';
}

const MEMORY_ALARM: Alarm = {
  raise: ['set_vm_memory_high_watermark', '0'],
  clear: ['set_vm_memory_high_watermark', '0.4'],
  member: 'mem_alarm',
};
const DISK_ALARM: Alarm = {
  raise: ['set_disk_free_limit', '999999GB'],
  clear: ['set_disk_free_limit', '50MB'],
  member: 'disk_free_alarm',
};

/** With an alarm on, the broker takes nothing from publishers; connections stay. */
async function alarmBroker({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const broker = cluster.servers.rabbitmq;
  const alarm = fault.kind === 'broker-disk-alarm' ? DISK_ALARM : MEMORY_ALARM;
  await broker.control(...alarm.raise);
  try {
    await untilAlarmed(cluster, alarm, true);
    await delay(fault.lastsMs);
  } finally {
    await broker.control(...alarm.clear);
  }
  await untilAlarmed(cluster, alarm, false);
  return `the broker reported its ${alarm.member}`;
}

/** The broker's own account of it is seconds old. */
async function untilAlarmed({ platform }: Cluster, { member }: Alarm, isRaised: boolean): Promise<void> {
  const deadline = performance.now() + ALARM_LIMIT_MS;
  for (;;) {
    const nodes = await platform.bus('main').nodes();
    if (nodes.some((node) => node[member]) === isRaised) return;
    if (performance.now() > deadline) throw new Error(`the broker's ${member} stayed ${String(!isRaised)}`);
    await delay(200);
  }
}

async function restartDatabase({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  await cluster.servers.postgresql.stopImmediately();
  await delay(fault.lastsMs);
  await cluster.servers.postgresql.start();
  return 'the server ended at once and started again';
}

async function crashDatabase({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  await cluster.servers.postgresql.crash();
  await delay(fault.lastsMs);
  await cluster.servers.postgresql.start();
  return 'all processes of the server were killed and it recovered';
}

/** The server stands still with all its sessions; new connections are taken by the system and not answered. */
async function freezeDatabase({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const stopped = cluster.freeze(await cluster.servers.postgresql.processes());
  await delay(fault.lastsMs);
  cluster.thaw();
  return `${stopped} processes of the server stood still`;
}

/** As after a failover to a server that is not the primary yet. */
async function makeDatabaseReadOnly({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const database = cluster.servers.postgresql;
  const reload = 'SELECT pg_reload_conf()';
  await database.query('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on', reload);
  await delay(fault.lastsMs);
  const rows = await database.query<{ value: string }>(
    'postgres',
    `SELECT current_setting('default_transaction_read_only') AS value`,
  );
  const readWrite = 'SET default_transaction_read_only = off';
  await database.query('postgres', readWrite, 'ALTER SYSTEM RESET default_transaction_read_only', reload);
  if (rows[0]?.value !== 'on') throw new Error('the server stayed writable');
  return 'the server refused writes';
}
