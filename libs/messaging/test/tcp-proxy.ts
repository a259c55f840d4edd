import { connect, createServer, type Server, type Socket } from 'node:net';

/** A broker's network, to be cut: everything it carries is closed, or silently held back. */
export class TcpProxy {
  private readonly sockets = new Set<Socket>();
  private readonly clients = new Set<Socket>();
  private server: Server | null = null;
  private port = 0;
  private silent = false;

  private constructor(private readonly target: URL) {}

  static async inFrontOf(url: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(url));
    await proxy.restore();
    return proxy;
  }

  /** The target's URL with the proxy's address. */
  get url(): string {
    const url = new URL(this.target);
    url.host = `127.0.0.1:${this.port}`;
    return url.toString();
  }

  /** Refuses connections and closes those that stand. */
  async cut(): Promise<void> {
    const { server } = this;
    this.server = null;
    this.sockets.forEach((socket) => socket.destroy());
    await new Promise((resolve) => (server === null ? resolve(null) : server.close(resolve)));
  }

  /** Carries again, at the same port. */
  async restore(): Promise<void> {
    this.silent = false;
    const server = createServer((client) => this.carry(client));
    this.server = server;
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve));
    this.port = (server.address() as { port: number }).port;
  }

  /** Keeps connections open and loses what is sent. */
  fallSilent(): void {
    this.silent = true;
  }

  /** Sends `frame` to every client, as if the target had; only between two of its own frames, so while nothing else is going on. */
  inject(frame: Buffer): void {
    this.clients.forEach((client) => client.write(frame));
  }

  private carry(client: Socket): void {
    this.clients.add(client);
    client.on('close', () => this.clients.delete(client));
    const upstream = connect(Number(this.target.port), this.target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.sockets.add(from);
      from.on('data', (data) => this.silent || to.write(data));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        this.sockets.delete(from);
        to.destroy();
      });
    }
  }
}
