import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from '../cluster.ts';
import { createSchedule } from '../load/task-worker.ts';
import type { PlannedFault } from '../plan.ts';
import type { Injector, Proof, Scene } from './injector.ts';

const ALARM_LIMIT_MS = 20_000;
const FIRST_DIRECT_FACILITY = 15_000;
const DIRECT_PATIENCE_MS = 20_000;

/** An orderly end and a new start on the same data. */
export const restartBroker: Injector = (scene, fault) => endBroker(scene, fault, 'SIGTERM');

export const killBroker: Injector = (scene, fault) => endBroker(scene, fault, 'SIGKILL');

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
export const alarmBroker: Injector = async ({ cluster }, fault) => {
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
};

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

export const restartDatabase: Injector = async ({ cluster }, fault) => {
  await cluster.servers.postgresql.stopImmediately();
  await delay(fault.lastsMs);
  await cluster.servers.postgresql.start();
  return 'the server ended at once and started again';
};

export const crashDatabase: Injector = async ({ cluster }, fault) => {
  await cluster.servers.postgresql.crash();
  await delay(fault.lastsMs);
  await cluster.servers.postgresql.start();
  return 'all processes of the server were killed and it recovered';
};

/** The server stands still with all its sessions; new connections are taken by the system and not answered. */
export const freezeDatabase: Injector = async ({ cluster }, fault) => {
  const stopped = cluster.freeze(await cluster.servers.postgresql.processes());
  await delay(fault.lastsMs);
  cluster.thaw();
  return `${stopped} processes of the server stood still`;
};

/** As after a failover to a server that is not the primary yet. */
export const makeDatabaseReadOnly: Injector = async ({ cluster }, fault) => {
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
};
