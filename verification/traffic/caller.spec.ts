import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Random } from '#platform/random.ts';
import { Caller, type CallerOptions, Traffic } from './caller.ts';
import { KeepAliveConnections } from './connections.ts';

describe('Caller', () => {
  const statuses: number[] = [];
  const received: IncomingHttpHeaders[] = [];
  let server: Server;
  let url: string;
  let traffic: Traffic;

  beforeAll(async () => {
    server = createServer((request, response) => {
      received.push(request.headers);
      response.writeHead(statuses.shift() ?? 200).end('{}');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });

  beforeEach(() => {
    received.length = 0;
    traffic = new Traffic();
  });

  afterAll(() => server.close());

  function callerWith(options: Partial<CallerOptions> = {}): Caller {
    const { signal: stop } = new AbortController();
    return new Caller({ traffic, random: new Random(1), stop, losesResponses: false, ...options });
  }

  it('retries after 503 with the same idempotency key', async () => {
    statuses.push(503);
    const outcome = await callerWith().persist({ operation: 'PUT x', url, idempotencyKey: 'one' });
    expect(outcome.response?.status).toBe(200);
    expect(received.map((headers) => headers['idempotency-key'])).toEqual(['one', 'one']);
    expect(traffic.unexpectedCount).toBe(0);
  });

  it('discards some successful responses, and retries', async () => {
    const caller = callerWith({ losesResponses: true });
    for (let count = 0; count < 100; count += 1) await caller.persist({ operation: 'GET x', url });
    expect(traffic.lostResponses).toBeGreaterThan(0);
    expect(received).toHaveLength(100 + traffic.lostResponses);
  });

  it('opens a connection for each request', async () => {
    for (let count = 0; count < 5; count += 1) await callerWith().attempt({ operation: 'GET x', url });
    expect(traffic.connections).toBe(5);
  });

  it('reuses keep-alive connections, and opens a new one for every tenth request', async () => {
    const connections = new KeepAliveConnections();
    const caller = callerWith({ connections });
    for (let count = 0; count < 20; count += 1) await caller.attempt({ operation: 'GET x', url });
    expect(traffic.connections).toBe(3);
    connections.closeIdle();
  });
});
