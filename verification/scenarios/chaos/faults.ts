import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { TcpProxy } from '#platform/tcp-proxy.ts';
import { eventually } from '#platform/waiting.ts';
import { watchApplications } from '#verification/audit/gather.ts';
import type { Load } from '#verification/traffic/load.ts';
import { createSchedule } from '#verification/traffic/tasks.ts';
import { ENGINE_FAULTS, type Injector, type Proof, type FaultContext } from './engine-faults.ts';
import { expireRows } from './expired-rows.ts';
import { DEPENDENCIES, type FaultKind, REPLICA_NAMES } from './plan.ts';

const RESTART_DELAY_MS = 500;

const INJECTORS: Readonly<Record<FaultKind, Injector>> = {
  ...ENGINE_FAULTS,
  'kill-replica': killReplica,
  'kill-starved-replica': killStarvedReplica,
  'freeze-replica': freezeReplica,
  'rolling-restart': rollingRestart,
  'broker-restart': (context) => endBroker(context, 'SIGTERM'),
  'broker-kill': (context) => endBroker(context, 'SIGKILL'),
  'broker-memory-alarm': (context) =>
    alarmBroker(context, 'mem_alarm', 'set_vm_memory_high_watermark', ['0', '0.4']),
  'broker-disk-alarm': (context) =>
    alarmBroker(context, 'disk_free_alarm', 'set_disk_free_limit', ['999999GB', '50MB']),
  'database-restart': async (context) => {
    await context.testbed.servers.postgresql.stopImmediately();
    return startDatabase(context, 'the server stopped immediately and started again');
  },
  'database-kill': async (context) => {
    await context.testbed.servers.postgresql.crash();
    return startDatabase(context, 'all processes of the server were killed and it recovered');
  },
  'database-freeze': freezeDatabase,
  'database-read-only': makeDatabaseReadOnly,
  'reset-connections': resetConnections,
  'black-hole': blackHole,
  'half-open': halfOpen,
  upgrade: upgradeService,
  'roll-back': rollServiceBack,
  calm: leaveAlone,
  'expired-rows': expireRows,
};

/** Injects the fault of the round. @throws {Error} if its effect could not be observed */
export function injectFault(context: FaultContext): Promise<Proof> {
  return INJECTORS[context.fault.kind](context);
}

async function killReplica({ testbed, fault }: FaultContext): Promise<Proof> {
  const { label, program } = testbed.replica(fault.replica);
  program.signal('SIGKILL');
  const how = await program.process.ended;
  // A process manager notices the exit after a moment.
  await delay(RESTART_DELAY_MS);
  await program.spawn();
  return `${label} ${how}`;
}

/**
 * Cuts a replica off its database, so that the replica accepts work and finishes none. Then kills the replica
 * with all that work pending.
 */
async function killStarvedReplica(context: FaultContext): Promise<Proof> {
  if (context.testbed.isClustered) return killWaitingReplica(context);
  const proxy = context.testbed.proxy(context.fault.replica, 'database');
  proxy.freeze();
  await delay(context.fault.lastsMs);
  const count = proxy.connections;
  const killed = await killReplica(context);
  await proxy.restore();
  return `${killed} after ${proved(count, 'connections to its database were frozen')}`;
}

/** A table that each service writes continuously. */
const WRITTEN = { auth: 'auth.refresh_token', settings: 'settings.setting', task: 'task.inbox' } as const;

/** Does the same as `killStarvedReplica` without a proxy: a locked table makes the replica wait. */
async function killWaitingReplica(context: FaultContext): Promise<Proof> {
  const { service } = context.fault.replica;
  const session = new Client({
    connectionString: context.testbed.platform.settings.databases[service].owner,
  });
  await session.connect();
  try {
    await session.query(`BEGIN; LOCK TABLE ${WRITTEN[service]} IN ACCESS EXCLUSIVE MODE`);
    await delay(context.fault.lastsMs);
    const { rows } = await session.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM pg_locks WHERE NOT granted',
    );
    const killed = await killReplica(context);
    return `${killed} after ${proved(rows[0]?.count ?? 0, 'statements waited for a lock')}`;
  } finally {
    await session.end();
  }
}

async function freezeReplica({ testbed, fault }: FaultContext): Promise<Proof> {
  const { label, program } = testbed.replica(fault.replica);
  program.signal('SIGSTOP');
  await delay(fault.lastsMs);
  const wasReady = await program.isReady();
  program.signal('SIGCONT');
  if (wasReady) throw new Error(`${label} responded while it was stopped`);
  return `${label} did not respond for ${fault.lastsMs} ms`;
}

/**
 * Restarts each replica in turn, like a rolling update: SIGTERM, wait for exit, start, wait until it is
 * ready.
 */
async function rollingRestart({ testbed, load, fault }: FaultContext): Promise<Proof> {
  const replicas = testbed.replicas.filter(({ name }) => name.service === fault.replica.service);
  const requests = await withoutFailure(load, async () => {
    for (const { label, program } of replicas) {
      const exitCode = await program.stop('SIGTERM');
      if (exitCode !== 0) throw new Error(`${label} ${await program.process.ended} after SIGTERM`);
      await program.start();
      await eventually(() => {
        if (!testbed.isBalanced()) throw new Error(`the balancer does not send requests to ${label}`);
      });
    }
  });
  return `${replicas.length} orderly restarts during ${requests} requests`;
}

/** Injects nothing. No request may fail. */
async function leaveAlone({ load, fault }: FaultContext): Promise<Proof> {
  const requests = await withoutFailure(load, () => delay(fault.lastsMs));
  return `nothing injected during ${requests} requests`;
}

/** Runs `work`. Every attempt that begins during it must succeed. Returns the number of these attempts. */
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

/** Upgrades a service like a deployment: first the migrations, then replica by replica. */
async function upgradeService(context: FaultContext): Promise<Proof> {
  const { testbed, load, fault } = context;
  const { service } = fault.replica;
  testbed.useBuild('present');
  await testbed.platform.migrate(service, { withIdentities: false });
  if (service === 'task') await watchApplications(testbed.platform, 'business_unit_facilities');
  const proof = await rollingRestart(context);
  testbed.notePresent(service);
  // The earlier release does not have the commands that change schedules.
  if (service === 'task') load.startScheduleChanges();
  return proof;
}

/** Rolls the replicas of a service back to the release. The migrations are not reverted. */
async function rollServiceBack(context: FaultContext): Promise<Proof> {
  const { testbed, load, fault } = context;
  if (fault.replica.service === 'task') await load.finishScheduleChanges();
  testbed.useBuild('release');
  return rollingRestart(context);
}

async function resetConnections(context: FaultContext): Promise<Proof> {
  const endsAtMs = performance.now() + context.fault.lastsMs;
  let count = 0;
  do {
    count += sumOfProxies(context, (proxy) => proxy.reset());
    await delay(250);
  } while (performance.now() < endsAtMs);
  return proved(count, 'connections reset');
}

async function blackHole(context: FaultContext): Promise<Proof> {
  for (const proxy of proxiesOf(context)) proxy.freeze();
  await delay(context.fault.lastsMs);
  const count = sumOfProxies(context, (proxy) => proxy.connections);
  for (const proxy of proxiesOf(context)) await proxy.restore();
  return proved(count, 'connections were frozen');
}

async function halfOpen(context: FaultContext): Promise<Proof> {
  const count = sumOfProxies(context, (proxy) => proxy.halfOpen());
  await delay(context.fault.lastsMs);
  return proved(count, 'connections left half open');
}

function proxiesOf({ testbed, fault: { everywhere, replica, dependency } }: FaultContext): TcpProxy[] {
  const names = everywhere
    ? REPLICA_NAMES.filter(({ service }) => DEPENDENCIES[service].includes(dependency))
    : [replica];
  return names.map((name) => testbed.proxy(name, dependency));
}

function sumOfProxies(context: FaultContext, count: (proxy: TcpProxy) => number): number {
  return proxiesOf(context).reduce((sum, proxy) => sum + count(proxy), 0);
}

function proved(count: number, what: string): Proof {
  if (count === 0) throw new Error(`the fault hit nothing: 0 ${what}`);
  return `${count} ${what}`;
}

const ALARM_LIMIT_MS = 20_000;
const FIRST_DIRECT_FACILITY = 15_000;
const DIRECT_PATIENCE_MS = 20_000;

/** Ends the broker and starts it again on the same data. Creates schedules in between. */
async function endBroker(context: FaultContext, signal: 'SIGTERM' | 'SIGKILL'): Promise<Proof> {
  const broker = context.testbed.servers.rabbitmq;
  await broker.end(signal);
  const acknowledged = await createSchedulesDirectly(context);
  await delay(context.fault.lastsMs);
  await broker.start();
  return `the broker ended on ${signal} and started again; ${acknowledged} schedules acknowledged without it`;
}

/**
 * Creates a schedule at each replica of task-service, bypassing the balancer. Schedules need no broker,
 * because their events wait in the outbox. Returns the number of acknowledged schedules.
 */
async function createSchedulesDirectly({ testbed, load }: FaultContext): Promise<number> {
  const { context, journal } = load;
  const replicas = testbed.replicas.filter(({ name }) => name.service === 'task');
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

/**
 * Raises an alarm, during which the broker accepts no messages from publishers and keeps connections open.
 */
async function alarmBroker(
  { testbed, fault }: FaultContext,
  member: 'mem_alarm' | 'disk_free_alarm',
  command: string,
  [raised, cleared]: readonly [string, string],
): Promise<Proof> {
  const broker = testbed.servers.rabbitmq;
  const untilAlarm = (isRaised: boolean): Promise<void> =>
    eventually(
      async () => {
        const nodes = await testbed.platform.bus('main').nodes();
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

async function startDatabase({ testbed, fault }: FaultContext, proof: Proof): Promise<Proof> {
  await delay(fault.lastsMs);
  await testbed.servers.postgresql.start();
  return proof;
}

/**
 * Freezes the server with all its sessions. The operating system still accepts new connections, but no
 * process serves them.
 */
async function freezeDatabase({ testbed, load, fault }: FaultContext): Promise<Proof> {
  const stopped = testbed.freeze(await testbed.servers.postgresql.freeze());
  await delay(fault.lastsMs);
  const areReady = await Promise.all(testbed.replicas.map(({ program }) => program.isReady()));
  for (const [index, { label }] of testbed.replicas.entries())
    if (areReady[index] === true) load.journal.violations.push(`${label} was ready without its database`);
  testbed.thaw();
  return `${stopped} processes of the server were frozen`;
}

/** Makes the database refuse writes, like a server that is not yet the primary after a failover. */
async function makeDatabaseReadOnly({ testbed, fault }: FaultContext): Promise<Proof> {
  const database = testbed.servers.postgresql;
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
  return 'the server was read-only';
}
