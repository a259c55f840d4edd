import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** What the network between a service and a server does. `refuse`: nothing listens; `freeze`: bytes are held back. */
type Behaviour = 'pass' | 'refuse' | 'freeze';

/** A relay in front of a server (database, broker), for outages that leave the server itself alone. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private readonly clients = new Set<Socket>();
  private behaviour: Behaviour = 'pass';

  private constructor(
    private readonly target: URL,
    private server: Server,
    private readonly port: number,
  ) {}

  /** Listens on a free port of 127.0.0.1. @param targetUrl e.g. `postgres://…`; must name its port */
  static async start(targetUrl: string): Promise<TcpProxy> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new TcpProxy(new URL(targetUrl), server, (server.address() as AddressInfo).port);
    proxy.watch();
    return proxy;
  }

  /** The target's address by way of this proxy. */
  get url(): string {
    const url = new URL(this.target);
    url.hostname = '127.0.0.1';
    url.port = String(this.port);
    return url.toString();
  }

  /** Cuts every connection and refuses new ones. */
  async refuse(): Promise<void> {
    this.behaviour = 'refuse';
    const closed = once(this.server, 'close');
    this.server.close();
    this.cut();
    await closed;
  }

  /** Cuts every connection; new ones pass. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Holds all bytes back, as a stopped server or a lost network does: connections stay, answers do not come. */
  freeze(): void {
    this.behaviour = 'freeze';
    for (const socket of this.sockets) socket.pause();
  }

  /** Sends `bytes` to every client, as if the target had; only between two of its own messages, so while nothing else is going on. */
  inject(bytes: Buffer): void {
    for (const client of this.clients) client.write(bytes);
  }

  /** Everything passes again. */
  async restore(): Promise<void> {
    const wasRefusing = this.behaviour === 'refuse';
    this.behaviour = 'pass';
    for (const socket of this.sockets) socket.resume();
    if (!wasRefusing) return;
    this.server = createServer();
    this.watch();
    this.server.listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  /** Ends the proxy and its connections. */
  async stop(): Promise<void> {
    if (this.behaviour !== 'refuse') await this.refuse();
  }

  private watch(): void {
    this.server.on('connection', (client) => {
      this.clients.add(client);
      client.on('close', () => this.clients.delete(client));
      const upstream = connect(Number(this.target.port), this.target.hostname);
      this.join(client, upstream);
      this.join(upstream, client);
    });
  }

  private join(from: Socket, to: Socket): void {
    this.sockets.add(from);
    from.on('data', (chunk) => to.write(chunk));
    from.on('error', () => to.destroy());
    from.on('close', () => {
      this.sockets.delete(from);
      to.destroy();
    });
    if (this.behaviour === 'freeze') from.pause();
  }
}
