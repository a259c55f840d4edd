import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from './self-signed-certificate';

/**
 * What ends TLS before a service, as an ingress does: it says who the client is and that it came by https.
 */
export class TlsProxy {
  /** Where requests are passed on to. May change, and need not be there yet. */
  target = '';
  /** Headers that it sends over those it would send. */
  headers: Record<string, string> = {};

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  /** @param host a loopback address that the certificate names */
  static async start(host: string, certificate: Certificate): Promise<TlsProxy> {
    const server = createServer(certificate, (incoming, outgoing) => proxy.passOn(incoming, outgoing));
    server.listen(0, host);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const proxy = new TlsProxy(server, `https://${host}:${String(port)}`);
    return proxy;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private passOn(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const claimed = incoming.headers['x-forwarded-for'];
    const client = incoming.socket.remoteAddress ?? '';
    const headers = {
      ...incoming.headers,
      'x-forwarded-for': claimed === undefined ? client : `${[claimed].flat().join(', ')}, ${client}`,
      'x-forwarded-proto': 'https',
      ...this.headers,
    };
    const passed = request(new URL(incoming.url ?? '/', this.target), { method: incoming.method, headers });
    passed.on('error', () => outgoing.writeHead(502).end());
    passed.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(passed);
  }
}
