import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { secretsIn } from '@platform/testing';
import { END_OF_EXAMPLE, type Example } from './examples';

/** A request that went through, and its answer. */
export interface Exchange {
  method: string;
  /** With its query. */
  path: string;
  status: number;
  body: string;
}

/**
 * Stands before a program, passes everything on unchanged, and remembers the secrets that went through in
 * either direction.
 */
export class RecordingProxy {
  readonly secrets = new Map<string, string>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
    private readonly onExchange: (exchange: Exchange) => void,
  ) {}

  /** @param target address of the program, which need not run yet
   *  @param onExchange called before the answer is passed on */
  static async start(
    target: string,
    onExchange: (exchange: Exchange) => void = () => undefined,
  ): Promise<RecordingProxy> {
    const server = createServer((incoming, outgoing) => {
      proxy.passOn(target, incoming, outgoing).catch((error: unknown) => {
        // As if the program were not there.
        outgoing.destroy(error instanceof Error ? error : undefined);
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const proxy = new RecordingProxy(server, `http://127.0.0.1:${String(port)}`, onExchange);
    return proxy;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async passOn(target: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await bodyOf(incoming);
    this.remember(incoming, incoming.url, body);
    const { method, headers } = incoming;
    const sent = request(new URL(incoming.url ?? '/', target), { method, headers });
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const answered = await bodyOf(answer);
    this.remember(answer, incoming.url, answered);
    const status = answer.statusCode ?? 502;
    this.onExchange({ method: method ?? '', path: incoming.url ?? '', status, body: answered.toString() });
    outgoing.writeHead(status, answer.headers).end(answered);
  }

  private remember({ headers }: IncomingMessage, url: string | undefined, body: Buffer): void {
    for (const [value, kind] of secretsIn({ url, headers, body: body.toString() }))
      this.secrets.set(value, kind);
  }
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  return Buffer.concat((await message.toArray()) as Buffer[]);
}

/** Stands before services and notes which example asked them what. */
export class ExampleTraffic {
  private readonly proxies: RecordingProxy[] = [];
  private exchanges: Exchange[] = [];

  /** @returns the address to reach `target` at */
  async before(target: string): Promise<string> {
    const proxy = await RecordingProxy.start(target, (exchange) => this.exchanges.push(exchange));
    this.proxies.push(proxy);
    return proxy.url;
  }

  /** Forgets what went through so far, and gives it. */
  take(): Exchange[] {
    const taken = this.exchanges;
    this.exchanges = [];
    return taken.filter(({ path }) => !path.startsWith(END_OF_EXAMPLE));
  }

  /**
   * What went through, by the heading of the example that did it. A request repeated within an example counts
   * once: a feed polls.
   * @param background calls that no example waits for, so that nobody can say where they belong; left out
   */
  callsByHeading(examples: readonly Example[], background: readonly string[] = []): Record<string, string[]> {
    const calls = new Map(examples.map(({ heading }) => [heading, new Set<string>()]));
    let number = 0;
    for (const exchange of this.exchanges) {
      if (exchange.path === `${END_OF_EXAMPLE}${String(number)}`) number += 1;
      else if (!background.includes(summary(exchange)))
        calls.get(examples[number]?.heading ?? '')?.add(summary(exchange));
    }
    if (number !== examples.length)
      throw new Error(`${String(number)} of ${String(examples.length)} examples ended`);
    return Object.fromEntries([...calls].map(([heading, made]) => [heading, [...made]]));
  }

  async stop(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.stop()));
  }
}

const UUID = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g;

/** e.g. `POST /auth/token/user 401, reason 1` */
function summary({ method, path, status, body }: Exchange): string {
  const [pathname = ''] = path.split('?');
  const reason = /"rejectionReason":(\d+)/.exec(body)?.[1];
  return `${method} ${pathname.replace(UUID, '{id}')} ${String(status)}${reason === undefined ? '' : `, reason ${reason}`}`;
}
