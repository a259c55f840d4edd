import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

export interface TcpTarget {
  readonly host: string;
  readonly port: number;
}

interface Pair {
  readonly client: Socket;
  readonly upstream: Socket;
  /** Whether the connection to the server is gone without the client knowing. */
  isHalfOpen: boolean;
  /** Number of the texts of `dropResponse` that the client has sent so far. */
  lostTextsSent: number;
}

/**
 * A TCP proxy between a process and a server. It breaks the network on command and leaves the server itself
 * alone.
 */
export class TcpProxy {
  readonly #chooseTarget: () => TcpTarget | null;
  readonly #pairs = new Set<Pair>();
  /** The URL given to `start()`, but through this proxy. */
  url = '';
  #server: Server;
  #port = 0;
  #host = '127.0.0.1';
  #isFrozen = false;
  #lost: readonly string[] = [];

  /** @param chooseTarget returns the target of a new connection, or null to refuse it */
  constructor(chooseTarget: () => TcpTarget | null) {
    this.#chooseTarget = chooseTarget;
    this.#server = this.#makeServer();
  }

  /**
   * Starts a proxy in front of one server, on a free port.
   * @param targetUrl e.g. `postgres://…`; must contain the port
   */
  static async start(targetUrl: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(targetUrl);
    const proxy = new TcpProxy(() => ({ host: hostname, port: Number(port) }));
    await proxy.listen(0);
    proxy.url = throughPort(targetUrl, proxy.port);
    return proxy;
  }

  /** @param port 0 for any free port */
  async listen(port: number, host = this.#host): Promise<void> {
    this.#host = host;
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get port(): number {
    return this.#port;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  /** Closes every connection; new ones are accepted. */
  cut(): void {
    for (const pair of this.#pairs) cut(pair);
  }

  /** Resets every connection, like a firewall or a dying router. Returns their number. */
  reset(): number {
    const pairs = [...this.#pairs];
    for (const { client, upstream } of pairs) {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    }
    return pairs.length;
  }

  /** Closes every connection and refuses new ones. */
  async refuse(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cut();
    await closed;
  }

  /** Holds back all bytes of old and new connections, like a stopped server or a lost network. */
  freeze(): void {
    this.#isFrozen = true;
    for (const pair of this.#pairs) pause(pair);
  }

  /** Lets everything pass again; bytes that were held back arrive late. */
  async restore(): Promise<void> {
    this.#isFrozen = false;
    for (const { client, upstream } of this.#pairs) {
      client.resume();
      upstream.resume();
    }
    if (this.#server.listening) return;
    this.#server = this.#makeServer();
    await this.listen(this.#port);
  }

  /**
   * Resets the server's side of every connection without telling the client. New connections work. Returns
   * the number of connections.
   */
  halfOpen(): number {
    const pairs = [...this.#pairs].filter((pair) => !pair.isHalfOpen);
    for (const pair of pairs) {
      pair.isHalfOpen = true;
      pair.upstream.resetAndDestroy();
      pair.client.removeAllListeners('data').on('data', () => undefined);
    }
    return pairs.length;
  }

  /**
   * Closes the connection whose client sends all `texts` in turn, as soon as the server responds to the last
   * one: the client does not get that response.
   */
  dropResponse(...texts: string[]): void {
    this.#lost = texts;
    for (const pair of this.#pairs) pair.lostTextsSent = 0;
  }

  /** Whether the response of `dropResponse` is still to be dropped. */
  get dropsResponse(): boolean {
    return this.#lost.length > 0;
  }

  /**
   * Sends `bytes` to every client as if the server had sent them. Only for idle connections: the bytes must
   * not split a message of the server.
   */
  inject(bytes: Buffer): void {
    for (const { client } of this.#pairs) client.write(bytes);
  }

  stop(): Promise<void> {
    return this.refuse();
  }

  #makeServer(): Server {
    return createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
  }

  #accept(client: Socket): void {
    const target = this.#chooseTarget();
    client.on('error', () => undefined);
    if (target === null) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ ...target, allowHalfOpen: true });
    const pair: Pair = { client, upstream, isHalfOpen: false, lostTextsSent: 0 };
    client.setNoDelay(true);
    pair.upstream.setNoDelay(true);
    this.#pairs.add(pair);
    this.#join(pair, client, pair.upstream);
    this.#join(pair, pair.upstream, client);
    if (this.#isFrozen) pause(pair);
  }

  #join(pair: Pair, from: Socket, to: Socket): void {
    from.on('data', (chunk: Buffer) => {
      if (this.#isLost(pair, from, chunk)) return cut(pair);
      if (!to.write(chunk)) from.pause();
    });
    to.on('drain', () => {
      if (!this.#isFrozen) from.resume();
    });
    from.on('end', () => {
      if (!pair.isHalfOpen) to.end();
      else if (from === pair.client) from.end();
    });
    from.on('error', () => this.#drop(pair, from));
    from.on('close', () => this.#drop(pair, from));
  }

  #isLost(pair: Pair, from: Socket, chunk: Buffer): boolean {
    if (this.#lost.length === 0) return false;
    const next = this.#lost[pair.lostTextsSent];
    if (from === pair.client) {
      if (next !== undefined && chunk.includes(next)) pair.lostTextsSent += 1;
      return false;
    }
    if (next !== undefined) return false;
    this.#lost = [];
    return true;
  }

  /**
   * Closes the other side of a connection. Leaves the client of a half-open connection connected when its
   * server's side ends.
   */
  #drop(pair: Pair, gone: Socket): void {
    if (pair.isHalfOpen && gone === pair.upstream) return;
    this.#pairs.delete(pair);
    const other = gone === pair.client ? pair.upstream : pair.client;
    // A reset on one side becomes a reset on the other.
    if (gone.errored === null) other.destroy();
    else other.resetAndDestroy();
  }
}

function cut({ client, upstream }: Pair): void {
  client.destroy();
  upstream.destroy();
}

function pause({ client, upstream }: Pair): void {
  client.pause();
  upstream.pause();
}

/** Returns `url` with its host and port replaced by a port of this machine. */
export function throughPort(url: string, port: number): string {
  const moved = new URL(url);
  moved.hostname = '127.0.0.1';
  moved.port = String(port);
  return moved.href;
}
