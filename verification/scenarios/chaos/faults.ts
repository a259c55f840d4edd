import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { TcpProxy } from '#platform/tcp-proxy.ts';
import { eventually } from '#platform/waiting.ts';
import { watchApplications } from '#verification/audit/gather.ts';
import { ENGINE_FAULTS, type Injector, type Proof, type Scene } from './engines/faults.ts';
import type { Load } from '#verification/traffic/load.ts';
import { createSchedule } from '#verification/traffic/tasks.ts';
import { outliveRows } from './outlive-rows.ts';
import { DEPENDENCIES, type FaultKind, REPLICA_NAMES } from './plan.ts';

const RESTART_DELAY_MS = 500;

const INJECTORS: Readonly<Record<FaultKind, Injector>> = {
  ...ENGINE_FAULTS,
  'kill-replica': killReplica,
  'kill-starved-replica': killStarvedReplica,
  'freeze-replica': freezeReplica,
  'rolling-restart': rollingRestart,
  'broker-restart': (scene) => endBroker(scene, 'SIGTERM'),
  'broker-kill': (scene) => endBroker(scene, 'SIGKILL'),
  'broker-memory-alarm': (scene) =>
    alarmBroker(scene, 'mem_alarm', 'set_vm_memory_high_watermark', ['0', '0.4']),
  'broker-disk-alarm': (scene) =>
    alarmBroker(scene, 'disk_free_alarm', 'set_disk_free_limit', ['999999GB', '50MB']),
  'database-restart': async (scene) => {
    await scene.cluster.servers.postgresql.stopImmediately();
    return startDatabase(scene, 'the server ended at once and started again');
  },
  'database-kill': async (scene) => {
    await scene.cluster.servers.postgresql.crash();
    return startDatabase(scene, 'all processes of the server were killed and it recovered');
  },
  'database-freeze': freezeDatabase,
  'database-read-only': makeDatabaseReadOnly,
  'reset-connections': resetConnections,
  'black-hole': blackHole,
  'half-open': halfOpen,
  upgrade: upgradeService,
  'roll-back': rollServiceBack,
  calm: leaveAlone,
  'expired-rows': outliveRows,
};

/** Does the fault. @throws {Error} when it could not be seen to take place */
export function injectFault(scene: Scene): Promise<Proof> {
  return INJECTORS[scene.fault.kind](scene);
}

async function killReplica({ cluster, fault }: Scene): Promise<Proof> {
  const { label, program } = cluster.replica(fault.replica);
  program.signal('SIGKILL');
  const how = await program.process.ended;
  // What looks after processes notices after a moment.
  await delay(RESTART_DELAY_MS);
  await program.spawn();
  return `${label} ${how}`;
}

/**
 * Without its database a replica takes on work and finishes none; then it dies with all of it in its hands.
 */
async function killStarvedReplica(scene: Scene): Promise<Proof> {
  if (scene.cluster.isClustered) return killWaitingReplica(scene);
  const proxy = scene.cluster.proxy(scene.fault.replica, 'database');
  proxy.freeze();
  await delay(scene.fault.lastsMs);
  const count = proxy.connections;
  const killed = await killReplica(scene);
  await proxy.restore();
  return `${killed} after ${proved(count, 'connections to its database stood still')}`;
}

/** A table that each service writes all the time. */
const WRITTEN = { auth: 'auth.refresh_token', settings: 'settings.setting', task: 'task.inbox' } as const;

/** Where no proxy can hold its connections up: it waits for a lock. */
async function killWaitingReplica(scene: Scene): Promise<Proof> {
  const { service } = scene.fault.replica;
  const session = new Client({ connectionString: scene.cluster.platform.settings.databases[service].owner });
  await session.connect();
  try {
    await session.query(`BEGIN; LOCK TABLE ${WRITTEN[service]} IN ACCESS EXCLUSIVE MODE`);
    await delay(scene.fault.lastsMs);
    const { rows } = await session.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted',
    );
    const killed = await killReplica(scene);
    return `${killed} after ${proved(rows[0]?.count ?? 0, 'statements waited for a lock')}`;
  } finally {
    await session.end();
  }
}

async function freezeReplica({ cluster, fault }: Scene): Promise<Proof> {
  const { label, program } = cluster.replica(fault.replica);
  program.signal('SIGSTOP');
  await delay(fault.lastsMs);
  const wasReady = await program.isReady();
  program.signal('SIGCONT');
  if (wasReady) throw new Error(`${label} responded while it was stopped`);
  return `${label} did not respond for ${fault.lastsMs} ms`;
}

/**
 * Each replica in turn, as a rolling update: SIGTERM, wait for the end, a new process, wait until it is
 * ready.
 */
async function rollingRestart({ cluster, load, fault }: Scene): Promise<Proof> {
  const replicas = cluster.replicas.filter(({ name }) => name.service === fault.replica.service);
  const requests = await withoutFailure(load, async () => {
    for (const { label, program } of replicas) {
      const exitCode = await program.stop('SIGTERM');
      if (exitCode !== 0) throw new Error(`${label} ${await program.process.ended} after SIGTERM`);
      await program.start();
      await eventually(() => {
        if (!cluster.isBalanced()) throw new Error(`the balancer sends ${label} no requests`);
      });
    }
  });
  return `${replicas.length} orderly ends, ${requests} requests meanwhile`;
}

/** Nothing happens to the platform, and nothing may fail. */
async function leaveAlone({ load, fault }: Scene): Promise<Proof> {
  const requests = await withoutFailure(load, () => delay(fault.lastsMs));
  return `nothing was done, ${requests} requests meanwhile`;
}

/** Every attempt that begins meanwhile has to succeed at once. Gives how many there were. */
async function withoutFailure({ traffic }: Load, work: () => Promise<unknown>): Promise<number> {
  const wasStrict = traffic.isStrict;
  const before = traffic.attempts;
  traffic.isStrict = true;
  try {
    await work();
  } finally {
    traffic.isStrict = wasStrict;
  }
  return traffic.attempts - before;
}

/** As a deployment does it: the migrations in a step of their own, then replica by replica. */
async function upgradeService(scene: Scene): Promise<Proof> {
  const { cluster, load, fault } = scene;
  const { service } = fault.replica;
  cluster.run('present');
  await cluster.platform.migrate(service, { withIdentities: false });
  if (service === 'task') await watchApplications(cluster.platform, 'business_unit_facilities');
  const proof = await rollingRestart(scene);
  cluster.notePresent(service);
  // The release does not know these commands.
  if (service === 'task') load.startLives();
  return proof;
}

/** The migrations stay. */
async function rollServiceBack(scene: Scene): Promise<Proof> {
  const { cluster, load, fault } = scene;
  if (fault.replica.service === 'task') await load.finishLives();
  cluster.run('release');
  return rollingRestart(scene);
}

async function resetConnections(scene: Scene): Promise<Proof> {
  const endsAtMs = performance.now() + scene.fault.lastsMs;
  let count = 0;
  do {
    count += sumOfProxies(scene, (proxy) => proxy.reset());
    await delay(250);
  } while (performance.now() < endsAtMs);
  return proved(count, 'connections reset');
}

async function blackHole(scene: Scene): Promise<Proof> {
  for (const proxy of proxiesOf(scene)) proxy.freeze();
  await delay(scene.fault.lastsMs);
  const count = sumOfProxies(scene, (proxy) => proxy.connections);
  for (const proxy of proxiesOf(scene)) await proxy.restore();
  return proved(count, 'connections stood still');
}

async function halfOpen(scene: Scene): Promise<Proof> {
  const count = sumOfProxies(scene, (proxy) => proxy.halfOpen());
  await delay(scene.fault.lastsMs);
  return proved(count, 'connections left half open');
}

function proxiesOf({ cluster, fault: { everywhere, replica, dependency } }: Scene): TcpProxy[] {
  const names = everywhere
    ? REPLICA_NAMES.filter(({ service }) => DEPENDENCIES[service].includes(dependency))
    : [replica];
  return names.map((name) => cluster.proxy(name, dependency));
}

function sumOfProxies(scene: Scene, count: (proxy: TcpProxy) => number): number {
  return proxiesOf(scene).reduce((sum, proxy) => sum + count(proxy), 0);
}

function proved(count: number, what: string): Proof {
  if (count === 0) throw new Error(`the fault hit nothing: 0 ${what}`);
  return `${count} ${what}`;
}

const ALARM_LIMIT_MS = 20_000;
const FIRST_DIRECT_FACILITY = 15_000;
const DIRECT_PATIENCE_MS = 20_000;

/** The broker ends and starts again on the same data. */
async function endBroker(scene: Scene, signal: 'SIGTERM' | 'SIGKILL'): Promise<Proof> {
  const broker = scene.cluster.servers.rabbitmq;
  await broker.end(signal);
  const acknowledged = await createSchedulesDirectly(scene);
  await delay(scene.fault.lastsMs);
  await broker.start();
  return `the broker ended on ${signal} and started again; ${acknowledged} schedules acknowledged meanwhile`;
}

/**
 * Schedules need no broker: their events wait in the outbox. The requests pass the balancer by, so that every
 * replica gets one. Returns how many were acknowledged.
 */
async function createSchedulesDirectly({ cluster, load }: Scene): Promise<number> {
  const { context, journal } = load;
  const replicas = cluster.replicas.filter(({ name }) => name.service === 'task');
  const created = await Promise.all(
    replicas.map(({ program }, index) => {
      const urls = { ...context.urls, task: program.url };
      return createSchedule({ ...context, urls }, FIRST_DIRECT_FACILITY + index, {
        patienceMs: DIRECT_PATIENCE_MS,
      });
    }),
  );
  const acknowledged = created.filter((scheduleId) => scheduleId !== null).length;
  if (acknowledged < replicas.length)
    journal.violations.push(
      `without the broker only ${acknowledged} of ${replicas.length} replicas acknowledged a schedule`,
    );
  return acknowledged;
}

/** While an alarm is on, the broker takes nothing from publishers; connections stay. */
async function alarmBroker(
  { cluster, fault }: Scene,
  member: 'mem_alarm' | 'disk_free_alarm',
  command: string,
  [raised, cleared]: readonly [string, string],
): Promise<Proof> {
  const broker = cluster.servers.rabbitmq;
  const untilAlarm = (isRaised: boolean): Promise<void> =>
    eventually(
      async () => {
        const nodes = await cluster.platform.bus('main').nodes();
        if (nodes.some((node) => node[member]) !== isRaised)
          throw new Error(`the broker's ${member} stayed ${String(!isRaised)}`);
      },
      { timeoutMs: ALARM_LIMIT_MS, intervalMs: 200 },
    );
  await broker.control(command, raised);
  try {
    await untilAlarm(true);
    await delay(fault.lastsMs);
  } finally {
    await broker.control(command, cleared);
  }
  await untilAlarm(false);
  return `the broker reported its ${member}`;
}

async function startDatabase({ cluster, fault }: Scene, proof: Proof): Promise<Proof> {
  await delay(fault.lastsMs);
  await cluster.servers.postgresql.start();
  return proof;
}

/**
 * The server stands still with all its sessions; the system accepts new connections and nobody serves them.
 */
async function freezeDatabase({ cluster, load, fault }: Scene): Promise<Proof> {
  const stopped = cluster.freeze(await cluster.servers.postgresql.freeze());
  await delay(fault.lastsMs);
  const areReady = await Promise.all(cluster.replicas.map(({ program }) => program.isReady()));
  for (const [index, { label }] of cluster.replicas.entries())
    if (areReady[index] === true) load.journal.violations.push(`${label} was ready without its database`);
  cluster.thaw();
  return `${stopped} processes of the server stood still`;
}

/** As after a failover to a server that is not the primary yet. */
async function makeDatabaseReadOnly({ cluster, fault }: Scene): Promise<Proof> {
  const database = cluster.servers.postgresql;
  const reload = 'SELECT pg_reload_conf()';
  await database.query('postgres', 'ALTER SYSTEM SET default_transaction_read_only = on', reload);
  await delay(fault.lastsMs);
  const [row] = await database.query<{ value: string }>(
    'postgres',
    `SELECT current_setting('default_transaction_read_only') AS value`,
  );
  const readWrite = 'SET default_transaction_read_only = off';
  await database.query('postgres', readWrite, 'ALTER SYSTEM RESET default_transaction_read_only', reload);
  if (row?.value !== 'on') throw new Error('the server stayed writable');
  return 'the server refused writes';
}
