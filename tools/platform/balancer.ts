import { answersOk } from './wait-until.ts';
import { Relay } from './relay.ts';

const PROBE_INTERVAL_MS = 200;

/** What a balancer sends connections to. */
export interface Endpoint {
  readonly port: number;
}

/**
 * What a Kubernetes Service does, on one machine: a new connection goes to one of the endpoints whose last readiness probe succeeded, in
 * turn. It does not try another when that fails, and it never looks into a connection.
 */
export class Balancer {
  readonly #endpoints: readonly Endpoint[];
  readonly #readinessPath: string;
  readonly #ready = new Set<Endpoint>();
  readonly #relay: Relay;
  #turn = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(endpoints: readonly Endpoint[], readinessPath: string) {
    this.#endpoints = endpoints;
    this.#readinessPath = readinessPath;
    this.#relay = new Relay(() => this.#choose());
  }

  async listen(port: number): Promise<void> {
    await this.#relay.listen(port);
    this.#timer = setInterval(() => this.probe(), PROBE_INTERVAL_MS);
  }

  /** Endpoints that would get a connection now. */
  get readyCount(): number {
    return this.#ready.size;
  }

  close(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#relay.close();
  }

  /** Asks every endpoint whether it is ready. */
  probe(): void {
    for (const endpoint of this.#endpoints) void this.#probeOne(endpoint);
  }

  async #probeOne(endpoint: Endpoint): Promise<void> {
    if (await answersOk(`http://127.0.0.1:${endpoint.port}${this.#readinessPath}`)())
      this.#ready.add(endpoint);
    else this.#ready.delete(endpoint);
  }

  #choose(): number | null {
    const candidates = this.#endpoints.filter((endpoint) => this.#ready.has(endpoint));
    this.#turn += 1;
    return candidates[this.#turn % candidates.length]?.port ?? null;
  }
}
