import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { TcpProxy } from '#platform/tcp-proxy.ts';
import { answersOk } from '#platform/waiting.ts';
import type { Dependency, ReplicaName } from './plan.ts';

const PROBE_INTERVAL_MS = 200;

/** The two replicas of every service. */
export const REPLICA_NAMES: readonly ReplicaName[] = SERVICE_NAMES.flatMap((service) =>
  (['a', 'b'] as const).map((letter) => ({ service, letter })),
);

const DEPENDENCIES: readonly Dependency[] = ['database', 'broker', 'auth'];

/** The readiness probes of k8s/base: without its buses task-service still acknowledges schedules and completions. */
const READINESS_PATHS: Readonly<Record<ServiceName, string>> = {
  auth: '/health/ready',
  settings: '/health/ready',
  task: '/health/ready?exclude=bus-main&exclude=bus-scheduling',
};

/** What a balancer sends connections to. */
interface Endpoint {
  readonly port: number;
}

/**
 * What a Kubernetes Service does, on one machine: a new connection goes to one of the endpoints whose last readiness probe succeeded, in
 * turn. It does not try another when that fails, and it never looks into a connection.
 */
class Balancer {
  readonly #endpoints: readonly Endpoint[];
  readonly #readinessPath: string;
  readonly #ready = new Set<Endpoint>();
  readonly #proxy = new TcpProxy(() => this.#choose());
  #turn = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(endpoints: readonly Endpoint[], readinessPath: string) {
    this.#endpoints = endpoints;
    this.#readinessPath = readinessPath;
  }

  async listen(port: number): Promise<void> {
    await this.#proxy.listen(port);
    this.#timer = setInterval(() => {
      for (const endpoint of this.#endpoints) void this.#probe(endpoint);
    }, PROBE_INTERVAL_MS);
  }

  /** Endpoints that would get a connection now. */
  get readyCount(): number {
    return this.#ready.size;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#proxy.stop();
  }

  async #probe(endpoint: Endpoint): Promise<void> {
    if (await answersOk(`http://127.0.0.1:${endpoint.port}${this.#readinessPath}`)())
      this.#ready.add(endpoint);
    else this.#ready.delete(endpoint);
  }

  #choose(): { host: string; port: number } | null {
    const candidates = this.#endpoints.filter((endpoint) => this.#ready.has(endpoint));
    this.#turn += 1;
    const chosen = candidates[this.#turn % candidates.length];
    return chosen === undefined ? null : { host: '127.0.0.1', port: chosen.port };
  }
}

/** A proxy between each replica and each server it may talk to, and a balancer in front of each service. */
export class Network {
  readonly #proxies = new Map<string, TcpProxy>();
  readonly #balancers: Balancer[] = [];

  async openProxies(targets: Readonly<Record<Dependency, number>>): Promise<void> {
    for (const name of REPLICA_NAMES) {
      for (const dependency of DEPENDENCIES) {
        const proxy = new TcpProxy(() => ({ host: '127.0.0.1', port: targets[dependency] }));
        await proxy.listen(0);
        this.#proxies.set(keyOf(name, dependency), proxy);
      }
    }
  }

  async openBalancer(service: ServiceName, port: number, endpoints: readonly Endpoint[]): Promise<void> {
    const balancer = new Balancer(endpoints, READINESS_PATHS[service]);
    await balancer.listen(port);
    this.#balancers.push(balancer);
  }

  /** What stands between a replica and what it depends on. */
  proxy(name: ReplicaName, dependency: Dependency): TcpProxy {
    const found = this.#proxies.get(keyOf(name, dependency));
    if (found === undefined) throw new Error(`no proxy between ${name.service} and ${dependency}`);
    return found;
  }

  /** Replicas that the balancers would send requests to now. */
  get readyCount(): number {
    return this.#balancers.reduce((sum, balancer) => sum + balancer.readyCount, 0);
  }

  async close(): Promise<void> {
    const proxies = [...this.#proxies.values()].map((proxy) => proxy.stop());
    await Promise.all([...this.#balancers.map((balancer) => balancer.close()), ...proxies]);
  }
}

function keyOf({ service, letter }: ReplicaName, dependency: Dependency): string {
  return `${service}-${letter} ${dependency}`;
}
