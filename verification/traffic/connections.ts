import { Agent } from 'node:http';

/** Where requests get their connections; `false`: one of its own for the next one. */
export interface Connections {
  next(): Agent | false;
}

/** Balancers know connections, not requests: one request each, so that none is on its way when a server
 *  closes
 *  an idle one. */
export const ONE_REQUEST_EACH: Connections = { next: () => false };

/** One in this many requests has a connection of its own. */
const CHURN = 10;

/** Connections that are used again, as by callers that know one server for long. */
export class KeptConnections implements Connections {
  #agent = new Agent({ keepAlive: true });
  #count = 0;

  next(): Agent | false {
    this.#count += 1;
    return this.#count % CHURN === 0 ? false : this.#agent;
  }

  /** Closes idle connections, like a caller that pauses. Nothing may be in flight. */
  closeIdle(): void {
    this.#agent.destroy();
    this.#agent = new Agent({ keepAlive: true });
  }
}
