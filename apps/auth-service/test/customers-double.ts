import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A customers service that answers as the test says, and remembers what it was asked. */
export class CustomersDouble {
  requests: { url: string; authorization: string | undefined }[] = [];
  answer: { status: number; body: string } | 'silence' = { status: 200, body: '[501,502]' };
  private readonly server: Server = createServer((request, response) => {
    this.requests.push({ url: request.url ?? '', authorization: request.headers.authorization });
    if (this.answer === 'silence') return;
    response.writeHead(this.answer.status, { 'content-type': 'application/json' }).end(this.answer.body);
  });

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}`;
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
