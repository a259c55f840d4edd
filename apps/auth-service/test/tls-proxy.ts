import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Certificate } from './self-signed-certificate';

/**
 * Terminates TLS in front of a service, like an ingress. It forwards the client's address and
 * `X-Forwarded-Proto: https`.
 */
export class TlsProxy {
  /** The URL to which requests are forwarded. It may change, and may be set after the start. */
  target = '';
  /** Headers that override those of the proxy. */
  headers: Record<string, string> = {};

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  /** @param host a loopback address in the certificate */
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
