import type { ServiceName } from '#platform/programs.ts';
import { TcpProxy, type TcpTarget } from '#platform/tcp-proxy.ts';
import { answersOk } from '#platform/waiting.ts';
import { DEPENDENCIES, type Dependency, labelOf, REPLICA_NAMES, type ReplicaName } from './plan.ts';

const PROBE_INTERVAL_MS = 200;

/** The readiness probes of k8s/base: without its buses task-service still acknowledges schedules and completions. */
const READINESS_PATHS: Readonly<Record<ServiceName, string>> = {
  auth: '/health/ready',
  settings: '/health/ready',
  task: '/health/ready?exclude=bus-main&exclude=bus-scheduling',
};

/**
 * What a Kubernetes Service does, on one machine: a new connection goes to one of the ports whose last readiness probe succeeded, in
 * turn. It does not try another when that fails, and it never looks into a connection.
 */
class Balancer {
  readonly #ports: readonly number[];
  readonly #ready = new Set<number>();
  readonly #proxy = new TcpProxy(() => this.#choose());
  readonly #timer: NodeJS.Timeout;
  #turn = 0;

  constructor(ports: readonly number[], readinessPath: string) {
    this.#ports = ports;
    this.#timer = setInterval(() => {
      for (const port of ports) void this.#probe(port, readinessPath);
    }, PROBE_INTERVAL_MS);
  }

  listen(port: number): Promise<void> {
    return this.#proxy.listen(port);
  }

  /** Ports that would get a connection now. */
  get readyCount(): number {
    return this.#ready.size;
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    return this.#proxy.stop();
  }

  async #probe(port: number, readinessPath: string): Promise<void> {
    if (await answersOk(`http://127.0.0.1:${port}${readinessPath}`)()) this.#ready.add(port);
    else this.#ready.delete(port);
  }

  #choose(): TcpTarget | null {
    const candidates = this.#ports.filter((port) => this.#ready.has(port));
    this.#turn += 1;
    const port = candidates[this.#turn % candidates.length];
    return port === undefined ? null : { host: '127.0.0.1', port };
  }
}

/** A proxy between each replica and each server it talks to, and a balancer in front of each service. */
export class Network {
  readonly #proxies = new Map<string, TcpProxy>();
  readonly #balancers: Balancer[] = [];

  async openProxies(targets: Readonly<Record<Dependency, number>>): Promise<void> {
    for (const name of REPLICA_NAMES) {
      for (const dependency of DEPENDENCIES[name.service]) {
        const proxy = new TcpProxy(() => ({ host: '127.0.0.1', port: targets[dependency] }));
        await proxy.listen(0);
        this.#proxies.set(`${labelOf(name)} ${dependency}`, proxy);
      }
    }
  }

  async openBalancer(service: ServiceName, port: number, replicaPorts: readonly number[]): Promise<void> {
    const balancer = new Balancer(replicaPorts, READINESS_PATHS[service]);
    this.#balancers.push(balancer);
    await balancer.listen(port);
  }

  /** The proxy between a replica and a server. */
  proxy(name: ReplicaName, dependency: Dependency): TcpProxy {
    const found = this.#proxies.get(`${labelOf(name)} ${dependency}`);
    if (found === undefined) throw new Error(`no proxy between ${labelOf(name)} and ${dependency}`);
    return found;
  }

  /** Replicas that the balancers would send requests to now. */
  get readyCount(): number {
    return this.#balancers.reduce((sum, balancer) => sum + balancer.readyCount, 0);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#balancers, ...this.#proxies.values()].map((part) => part.stop()));
  }
}
