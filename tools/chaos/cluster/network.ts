import { SERVICE_NAMES, type Dependency, type ReplicaName, type ServiceName } from '../plan.ts';
import { Balancer, type Endpoint } from '#platform/balancer.ts';
import { Relay } from '#platform/relay.ts';

const LETTERS = ['a', 'b'] as const;

/** The two replicas of every service. */
export const REPLICA_NAMES: readonly ReplicaName[] = SERVICE_NAMES.flatMap((service) =>
  LETTERS.map((letter) => ({ service, letter })),
);

const DEPENDENCIES: readonly Dependency[] = ['database', 'broker', 'auth'];

/** The readiness probes of k8s/base: without its buses task-service still acknowledges schedules and completions. */
const READINESS_PATHS: Readonly<Record<ServiceName, string>> = {
  auth: '/health/ready',
  settings: '/health/ready',
  task: '/health/ready?exclude=bus-main&exclude=bus-scheduling',
};

/** A relay between each replica and each server it may talk to, and a balancer in front of each service. */
export class Network {
  readonly #relays = new Map<string, { relay: Relay; port: number }>();
  readonly #balancers = new Map<ServiceName, Balancer>();

  /** Opens the relays on `ports` (two for each service and dependency). */
  async openRelays(targets: Readonly<Record<Dependency, number>>, ports: readonly number[]): Promise<void> {
    const left = [...ports];
    for (const name of REPLICA_NAMES) {
      for (const dependency of DEPENDENCIES) {
        const relay = new Relay(() => targets[dependency]);
        const port = left.shift();
        if (port === undefined) throw new RangeError('a relay has no port');
        await relay.listen(port);
        this.#relays.set(keyOf(name, dependency), { relay, port });
      }
    }
  }

  async openBalancer(service: ServiceName, port: number, endpoints: readonly Endpoint[]): Promise<void> {
    const balancer = new Balancer(endpoints, READINESS_PATHS[service]);
    await balancer.listen(port);
    this.#balancers.set(service, balancer);
  }

  /** Where a replica reaches a dependency. */
  port(name: ReplicaName, dependency: Dependency): number {
    return this.#find(name, dependency).port;
  }

  relay(name: ReplicaName, dependency: Dependency): Relay {
    return this.#find(name, dependency).relay;
  }

  /** Replicas that the balancers would send requests to now. */
  get readyCount(): number {
    return [...this.#balancers.values()].reduce((sum, balancer) => sum + balancer.readyCount, 0);
  }

  close(): void {
    for (const balancer of this.#balancers.values()) balancer.close();
    for (const { relay } of this.#relays.values()) relay.close();
  }

  #find(name: ReplicaName, dependency: Dependency): { relay: Relay; port: number } {
    const found = this.#relays.get(keyOf(name, dependency));
    if (found === undefined) throw new Error(`no relay between ${name.service} and ${dependency}`);
    return found;
  }
}

function keyOf({ service, letter }: ReplicaName, dependency: Dependency): string {
  return `${service}-${letter} ${dependency}`;
}
