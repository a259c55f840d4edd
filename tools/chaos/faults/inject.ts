import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from '../cluster/cluster.ts';
import { REPLICA_NAMES } from '../cluster/network.ts';
import type { Relay } from '#platform/relay.ts';
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
  const replica = cluster.replica(fault.replica);
  replica.signal('SIGKILL');
  const how = await replica.process.ended;
  // What looks after processes notices after a moment.
  await delay(RESTART_DELAY_MS);
  await replica.spawn();
  return `${replica.label} ${how}`;
}

/** Without its database a replica takes on work and finishes none; then it dies with all of it in its hands. */
async function killStarvedReplica(scene: Scene, fault: PlannedFault): Promise<Proof> {
  const relay = scene.cluster.network.relay(fault.replica, 'database');
  relay.stall();
  await delay(fault.lastsMs);
  const count = relay.connections;
  const killed = await killReplica(scene, fault);
  relay.resume();
  return `${killed} after ${proved(count, 'connections to its database stood still')}`;
}

async function freezeReplica({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const replica = cluster.replica(fault.replica);
  replica.signal('SIGSTOP');
  await delay(fault.lastsMs);
  const wasReady = await replica.isReady();
  replica.signal('SIGCONT');
  if (wasReady) throw new Error(`${replica.label} answered while it was stopped`);
  return `${replica.label} did not answer for ${fault.lastsMs} ms`;
}

/** Each replica in turn, as a rolling update: SIGTERM, wait for the end, a new process, wait until it is ready. */
async function rollingRestart({ cluster, load }: Scene, fault: PlannedFault): Promise<Proof> {
  const replicas = cluster.replicas.filter(({ name }) => name.service === fault.replica.service);
  load.traffic.isStrict = true;
  const before = load.traffic.attempts;
  try {
    for (const replica of replicas) {
      replica.signal('SIGTERM');
      const how = await replica.process.ended;
      if (how !== 'ended with exit code 0') throw new Error(`${replica.label} ${how} after SIGTERM`);
      await replica.spawn();
      await replica.waitUntilReady();
      // The balancers' next probe.
      await delay(RESTART_DELAY_MS);
    }
  } finally {
    load.traffic.isStrict = false;
  }
  return `${replicas.length} orderly ends, ${load.traffic.attempts - before} requests meanwhile`;
}

async function resetConnections({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const relays = relaysOf(cluster, fault);
  const endsAtMs = performance.now() + fault.lastsMs;
  let count = 0;
  do {
    count += relays.reduce((sum, relay) => sum + relay.reset(), 0);
    await delay(250);
  } while (performance.now() < endsAtMs);
  return proved(count, 'connections reset');
}

async function blackHole({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const relays = relaysOf(cluster, fault);
  for (const relay of relays) relay.stall();
  await delay(fault.lastsMs);
  const count = relays.reduce((sum, relay) => sum + relay.connections, 0);
  for (const relay of relays) relay.resume();
  return proved(count, 'connections stood still');
}

async function halfOpen({ cluster }: Scene, fault: PlannedFault): Promise<Proof> {
  const count = relaysOf(cluster, fault).reduce((sum, relay) => sum + relay.halfOpen(), 0);
  await delay(fault.lastsMs);
  return proved(count, 'connections left half open');
}

function relaysOf(cluster: Cluster, { everywhere, replica, dependency }: PlannedFault): Relay[] {
  const names = everywhere
    ? REPLICA_NAMES.filter(({ service }) => dependency === 'database' || service !== 'auth').filter(
        ({ service }) => dependency !== 'broker' || service === 'task',
      )
    : [replica];
  return names.map((name) => cluster.network.relay(name, dependency));
}

function proved(count: number, what: string): Proof {
  if (count === 0) throw new Error(`the fault hit nothing: 0 ${what}`);
  return `${count} ${what}`;
}
