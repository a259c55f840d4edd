import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { type ByPart, byPart, type Part } from '#verification/bench/costs/usage.ts';
import { connectionMegabytes, idlePriceOf, priceOf, watcherMegabytes } from './prices.ts';
import { type Storage, storageOf } from './storage.ts';
import { ratesOf, REQUESTS, type Work, type Workload } from './workload.ts';

export type Replicas = Readonly<Record<ServiceName, number>>;

/** The resources that a workload needs if its busiest hour coincides with the fires of all facilities. */
export interface Need extends Storage {
  /**
   * Number of busy processors for each service, PostgreSQL and RabbitMQ. All replicas of a service count
   * together.
   */
  readonly cores: ByPart;
  readonly replicas: Replicas;
  /** Resident memory of all replicas of a service together, in MB. */
  readonly megabytes: Replicas;
  readonly walMegabytesPerSecond: number;
  readonly messagesPerSecond: number;
}

/** Maximum busy processors per replica. If it is exceeded, the service needs another replica. */
const CORES_PER_REPLICA = 0.6;

/** Computes the need of a workload. @param replicas by default the computed number */
export function needOf(workload: Workload, replicas = replicasFor(workload)): Need {
  const rates = ratesOf(workload);
  const cores = byPart((part) => coresOf(part, rates, replicas));
  const walBytes = WORK.map((work) => rates[work] * priceOf(work).walBytes);
  return {
    cores,
    replicas,
    megabytes: {
      auth: replicas.auth * idlePriceOf('auth-service').megabytes,
      settings:
        replicas.settings * idlePriceOf('settings-service').megabytes +
        workload.watchers * watcherMegabytes(),
      task: replicas.task * idlePriceOf('task-service').megabytes,
    },
    walMegabytesPerSecond: sum(walBytes) / 1e6,
    messagesPerSecond: rates.fire + rates.createSchedule + rates.completeInstance,
    ...storageOf(workload),
  };
}

const WORK: readonly Work[] = SERVICE_NAMES.flatMap((service): readonly Work[] => REQUESTS[service]);

/** Busy processors for the requests of a service: at an ordinary pace, and if all its replicas are busy. */
interface Demand {
  readonly paced: number;
  readonly whenBusy: number;
}

type Rates = Readonly<Record<Work, number>>;

function demandOf(service: ServiceName, rates: Rates): Demand {
  const cores = (micros: (work: Work) => number): number =>
    sum(REQUESTS[service].map((work) => rates[work] * micros(work))) / 1e6;
  return {
    paced: cores((work) => priceOf(work).service),
    whenBusy: cores((work) => priceOf(work).whenBusy.service),
  };
}

/**
 * Share (0–1) of the time for which each replica is busy with requests. A request costs `whenBusy` if it
 * arrives while the replica is busy, otherwise `paced`. Solves
 * replicas · busy = paced · (1 − busy) + whenBusy · busy.
 */
function busyShare({ paced, whenBusy }: Demand, replicas: number): number {
  return paced / (replicas + paced - whenBusy);
}

function coresOf(part: Part, rates: Rates, replicas: Replicas): number {
  if (part === 'postgresql' || part === 'rabbitmq') return coresOfServer(part, rates, replicas);
  return replicas[part] * busyShare(demandOf(part, rates), replicas[part]) + idleCores(part, rates, replicas);
}

function coresOfServer(server: 'postgresql' | 'rabbitmq', rates: Rates, replicas: Replicas): number {
  const ofRequests = SERVICE_NAMES.map((service) => {
    const busy = busyShare(demandOf(service, rates), replicas[service]);
    const micros = (work: Work): number => {
      const { whenBusy, ...paced } = priceOf(work);
      if (server === 'rabbitmq') return paced.rabbitmq;
      return paced.postgresql * (1 - busy) + whenBusy.postgresql * busy;
    };
    return sum(REQUESTS[service].map((work: Work) => rates[work] * micros(work))) / 1e6;
  });
  return sum(ofRequests) + idleCores(server, rates, replicas);
}

/**
 * Busy processors of a part without requests: its own background work, and that caused by other processes.
 */
function idleCores(part: Part, rates: Rates, replicas: Replicas): number {
  const watched = rates.listChanges > 0 ? replicas.settings : 0;
  return (
    idlePriceOf('the servers').cores[part] +
    sum(SERVICE_NAMES.map((name) => replicas[name] * idlePriceOf(`${name}-service`).cores[part])) +
    watched * idlePriceOf('settings-service, watched').cores[part]
  );
}

/** The smallest number of replicas that keeps each below its maximum, plus one spare. */
function replicasFor(workload: Workload): Replicas {
  const rates = ratesOf(workload);
  const needed = (service: ServiceName): number => {
    const { paced, whenBusy } = demandOf(service, rates);
    const allowed = CORES_PER_REPLICA - idlePriceOf(`${service}-service`).cores[service];
    return Math.max(1, Math.ceil(paced / allowed - (paced - whenBusy))) + 1;
  };
  return { auth: needed('auth'), settings: needed('settings'), task: needed('task') };
}

/** Number of connections of PostgreSQL while one service is rolled out, and their memory in MB. */
export function connectionsOf(
  { replicas }: Need,
  poolSize: number,
): { connections: number; megabytes: number } {
  const [migrations, people] = [2 * SERVICE_NAMES.length, 10];
  const pools = sum(SERVICE_NAMES.map((name) => (replicas[name] + 1) * poolSize));
  const connections = pools + migrations + people;
  return { connections, megabytes: connections * connectionMegabytes() };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** The limits of one PostgreSQL and one broker. */
export interface Limits {
  readonly cores: number;
  readonly gigabytes: number;
  readonly walMegabytesPerSecond: number;
  readonly messagesPerSecond: number;
}

/** Returns the limit that a need comes closest to, and the used share of it. */
export function firstLimit(need: Need, limits: Limits): { readonly name: string; readonly used: number } {
  const used = {
    'PostgreSQL cores': need.cores.postgresql / limits.cores,
    'PostgreSQL disk': need.gigabytes / limits.gigabytes,
    'PostgreSQL log': need.walMegabytesPerSecond / limits.walMegabytesPerSecond,
    'broker messages': need.messagesPerSecond / limits.messagesPerSecond,
  };
  const [[name, share] = ['', 0]] = Object.entries(used).sort(([, left], [, right]) => right - left);
  return { name, used: share };
}

/** Scales all quantities of a workload proportionally, so that its largest table has `rows` rows. */
export function scaledTo(rows: number, workload: Workload): Workload {
  const factor = rows / Math.max(...Object.values(storageOf(workload).rows));
  const { facilities, users, schedules, settings } = workload;
  return {
    ...workload,
    facilities: facilities * factor,
    users: users * factor,
    schedules: schedules * factor,
    settings: settings * factor,
  };
}
