import type { ServiceName } from '#platform/programs.ts';
import { TcpProxy, type TcpTarget } from '#platform/tcp-proxy.ts';
import { respondsOk } from '#platform/waiting.ts';

const PROBE_INTERVAL_MS = 200;

/**
 * The readiness probes of k8s/base. The probe of task-service excludes the buses, because the service
 * acknowledges schedules and completions without them.
 */
const READINESS_PATHS: Readonly<Record<ServiceName, string>> = {
  auth: '/health/ready',
  settings: '/health/ready',
  task: '/health/ready?exclude=bus-main&exclude=bus-scheduling',
};

/**
 * Behaves like a Kubernetes Service, on one machine. New connections go in turn to the ports whose last
 * readiness probe succeeded. If a connection to one port fails, no other port is tried. The data of
 * connections is not inspected.
 */
export class Balancer {
  readonly #ports: readonly number[];
  readonly #ready = new Set<number>();
  readonly #proxy = new TcpProxy(() => this.#choose());
  readonly #timer: NodeJS.Timeout;
  #turn = 0;

  constructor(service: ServiceName, ports: readonly number[]) {
    this.#ports = ports;
    this.#timer = setInterval(() => {
      for (const port of ports) void this.#probe(port, READINESS_PATHS[service]);
    }, PROBE_INTERVAL_MS);
  }

  listen(port: number): Promise<void> {
    return this.#proxy.listen(port);
  }

  /** Number of ports that are ready for new connections. */
  get readyCount(): number {
    return this.#ready.size;
  }

  stop(): Promise<void> {
    clearInterval(this.#timer);
    return this.#proxy.stop();
  }

  async #probe(port: number, readinessPath: string): Promise<void> {
    if (await respondsOk(`http://127.0.0.1:${port}${readinessPath}`)()) this.#ready.add(port);
    else this.#ready.delete(port);
  }

  #choose(): TcpTarget | null {
    const candidates = this.#ports.filter((port) => this.#ready.has(port));
    this.#turn += 1;
    const port = candidates[this.#turn % candidates.length];
    return port === undefined ? null : { host: '127.0.0.1', port };
  }
}
