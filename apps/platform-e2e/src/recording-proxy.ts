import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { secretsIn } from '@platform/testing';
import { END_OF_EXAMPLE, type Example } from './examples';

/** A forwarded request and its response. */
export interface Exchange {
  method: string;
  /** The path with its query. */
  path: string;
  status: number;
  body: string;
}

/**
 * A proxy in front of a program. Forwards everything unchanged and records the secrets in both directions.
 */
export class RecordingProxy {
  readonly secrets = new Map<string, string>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
    private readonly onExchange: (exchange: Exchange) => void,
  ) {}

  /**
   * @param target address of the program, which need not run yet
   * @param onExchange called before the response is forwarded
   */
  static async start(
    target: string,
    onExchange: (exchange: Exchange) => void = () => undefined,
  ): Promise<RecordingProxy> {
    const server = createServer((incoming, outgoing) => {
      proxy.forward(target, incoming, outgoing).catch((error: unknown) => {
        // The client sees a broken connection, as if the program were not running.
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

  private async forward(target: string, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await bodyOf(incoming);
    this.recordSecrets(incoming, incoming.url, body);
    const { method, headers } = incoming;
    const sent = request(new URL(incoming.url ?? '/', target), { method, headers });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const responseBody = await bodyOf(response);
    this.recordSecrets(response, incoming.url, responseBody);
    const status = response.statusCode ?? 502;
    this.onExchange({
      method: method ?? '',
      path: incoming.url ?? '',
      status,
      body: responseBody.toString(),
    });
    outgoing.writeHead(status, response.headers).end(responseBody);
  }

  private recordSecrets({ headers }: IncomingMessage, url: string | undefined, body: Buffer): void {
    for (const [value, kind] of secretsIn({ url, headers, body: body.toString() }))
      this.secrets.set(value, kind);
  }
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  return Buffer.concat((await message.toArray()) as Buffer[]);
}

/** Proxies in front of services that record which example sent which request. */
export class ExampleTraffic {
  private readonly proxies: RecordingProxy[] = [];
  private exchanges: Exchange[] = [];

  /**
   * Starts a proxy in front of `target`.
   * @returns the proxy's address
   */
  async before(target: string): Promise<string> {
    const proxy = await RecordingProxy.start(target, (exchange) => this.exchanges.push(exchange));
    this.proxies.push(proxy);
    return proxy.url;
  }

  /** Returns and clears the exchanges so far. */
  take(): Exchange[] {
    const exchanges = this.exchanges;
    this.exchanges = [];
    return exchanges.filter(({ path }) => !path.startsWith(END_OF_EXAMPLE));
  }

  /**
   * Returns the requests by the heading of the example that sent them. A request repeated within an example
   * counts once, because the number of polls depends on the time.
   * @param background requests to omit, because no example waits for them and they may occur at any time
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

/** Returns a summary such as `POST /auth/token/user 401, reason 1`. */
function summary({ method, path, status, body }: Exchange): string {
  const [pathname = ''] = path.split('?');
  const reason = /"rejectionReason":(\d+)/.exec(body)?.[1];
  return `${method} ${pathname.replace(UUID, '{id}')} ${String(status)}${reason === undefined ? '' : `, reason ${reason}`}`;
}
