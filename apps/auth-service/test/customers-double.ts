import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

type Answer = { status: number; body: string } | 'silence';

/** A test double of the customers service. It returns configured responses and records its requests. */
export class CustomersDouble {
  requests: { url: string; authorization: string | undefined }[] = [];
  answer: Answer = { status: 200, body: '[501,502]' };
  /** Responses by path. Other paths get `answer`. */
  readonly exceptions = new Map<string, Answer>();
  private readonly server: Server = createServer((request, response) => {
    this.requests.push({ url: request.url ?? '', authorization: request.headers.authorization });
    const answer = this.exceptions.get(request.url ?? '') ?? this.answer;
    if (answer === 'silence') return;
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
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
