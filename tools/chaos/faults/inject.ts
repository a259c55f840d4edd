import { setTimeout as delay } from 'node:timers/promises';
import type { TcpProxy } from '#platform/tcp-proxy.ts';
import type { Cluster } from '../cluster.ts';
import { REPLICA_NAMES } from '../network.ts';
import type { FaultKind, PlannedFault } from '../plan.ts';
import type { Injector, Proof, Scene } from './injector.ts';
import {
  alarmBroker,
  crashDatabase,
  freezeDatabase,
  killBroker,
  makeDatabaseReadOnly,
  restartBroker,
  restartDatabase,
} from './servers.ts';

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
