import { Agent } from 'node:http';

/** Chooses the connection of each request. `false` means a new connection. */
export interface Connections {
  next(): Agent | false;
}

/**
 * A new connection for each request. Balancers choose a replica per connection, and a request cannot meet a
 * server that is just closing an idle connection.
 */
export const ONE_REQUEST_EACH: Connections = { next: () => false };

/** Every tenth request gets a new connection. */
const CHURN = 10;

/** Reuses connections, like callers with keep-alive. */
export class KeepAliveConnections implements Connections {
  #agent = new Agent({ keepAlive: true });
  #count = 0;

  next(): Agent | false {
    this.#count += 1;
    return this.#count % CHURN === 0 ? false : this.#agent;
  }

  /** Closes idle connections, like a caller that pauses. No request may be in flight. */
  closeIdle(): void {
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true });
  }
}
