import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  /** The upstream half is gone and the client does not know. */
  halfOpen: boolean;
}

/** A TCP relay between a process and a server, where the network breaks on command. */
export class Relay {
  readonly #server: Server;
  readonly #choosePort: () => number | null;
  readonly #pairs = new Set<Pair>();
  #stalled = false;
  /** Connections taken so far. */
  accepted = 0;

  /** @param choosePort the port of 127.0.0.1 that a new connection goes to; null: it is refused */
  constructor(choosePort: () => number | null) {
    this.#choosePort = choosePort;
    this.#server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
  }

  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** Connections that stand now. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** Resets every connection, as a firewall or a dying router does. Gives how many. */
  reset(): number {
    const pairs = [...this.#pairs];
    for (const { client, upstream } of pairs) {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    }
    return pairs.length;
  }

  /** Holds all bytes back, of old and new connections: a black hole. Gives how many connections are in it. */
  stall(): number {
    this.#stalled = true;
    for (const pair of this.#pairs) pause(pair);
    return this.#pairs.size;
  }

  /** Ends a stall; what was held back arrives late. */
  resume(): void {
    this.#stalled = false;
    for (const { client, upstream } of this.#pairs) {
      client.resume();
      upstream.resume();
    }
  }

  /** The server's side of every connection goes, and the client never hears of it. New connections work. Gives how many. */
  halfOpen(): number {
    const pairs = [...this.#pairs].filter((pair) => !pair.halfOpen);
    for (const pair of pairs) {
      pair.halfOpen = true;
      pair.upstream.resetAndDestroy();
      pair.client.removeAllListeners('data').on('data', () => undefined);
    }
    return pairs.length;
  }

  close(): void {
    this.#server.close();
    this.reset();
  }

  #accept(client: Socket): void {
    this.accepted += 1;
    const port = this.#choosePort();
    client.on('error', () => undefined);
    if (port === null) {
      client.resetAndDestroy();
      return;
    }
    const pair: Pair = {
      client,
      upstream: connect({ port, host: '127.0.0.1', allowHalfOpen: true }),
      halfOpen: false,
    };
    client.setNoDelay(true);
    pair.upstream.setNoDelay(true);
    this.#pairs.add(pair);
    this.#join(pair, client, pair.upstream);
    this.#join(pair, pair.upstream, client);
    if (this.#stalled) pause(pair);
  }

  #join(pair: Pair, from: Socket, to: Socket): void {
    from.on('data', (chunk) => {
      if (!to.write(chunk)) from.pause();
    });
    to.on('drain', () => {
      if (!this.#stalled) from.resume();
    });
    from.on('end', () => {
      if (!pair.halfOpen) to.end();
      else if (from === pair.client) from.end();
    });
    from.on('error', () => this.#drop(pair, from));
    from.on('close', () => this.#drop(pair, from));
  }

  /** One side is gone: so is the other, unless that is exactly what must not be seen. */
  #drop(pair: Pair, gone: Socket): void {
    if (pair.halfOpen && gone === pair.upstream) return;
    this.#pairs.delete(pair);
    const other = gone === pair.client ? pair.upstream : pair.client;
    // A refused or reset connection looks the same on the other side.
    if (gone.errored === null) other.destroy();
    else other.resetAndDestroy();
  }
}

function pause({ client, upstream }: Pair): void {
  client.pause();
  upstream.pause();
}
