import { Agent, get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { eventually } from '@platform/testing';
import { OpenConnections, stopService } from '../src';
import { createStoppingApp, Story } from './stopping-app';

interface Received {
  status: number | undefined;
  connection: string | undefined;
  body: string;
}

describe('stopping a service', () => {
  let app: NestFastifyApplication;
  let connections: OpenConnections;
  let story: Story;
  let port: number;
  let agent: Agent;

  beforeEach(async () => {
    app = await createStoppingApp();
    connections = new OpenConnections(app.getHttpServer());
    await app.listen(0, '127.0.0.1');
    story = app.get(Story);
    port = (app.getHttpServer().address() as AddressInfo).port;
    agent = new Agent({ keepAlive: true, maxSockets: 1 });
  });

  afterEach(() => agent.destroy());

  function send(path: string, through: Agent = agent): Promise<Received> {
    return new Promise((resolve, reject) => {
      const request = get({ port, host: '127.0.0.1', path, agent: through }, (response: IncomingMessage) => {
        let body = '';
        response.on('data', (chunk: Buffer) => (body += chunk.toString()));
        response.on('end', () =>
          resolve({ status: response.statusCode, connection: response.headers.connection, body }),
        );
      });
      request.on('error', reject);
    });
  }

  async function begunRequest(): Promise<Promise<Received>[]> {
    const response = send('/held');
    await eventually(() => expect(story.events).toEqual(['begun']));
    return [response];
  }

  it('finishes the response in flight on a keep-alive connection, accepts no more requests, and closes the database last', async () => {
    await send('/quick');
    const [inFlight] = await begunRequest();
    const stopping = stopService(app, connections, { graceMs: 0, timeoutMs: 10_000 });
    await eventually(() => expect(app.getHttpServer().listening).toBe(false));
    await expect(send('/quick', new Agent())).rejects.toThrow('ECONNREFUSED');
    story.release();
    expect(await inFlight).toEqual({ status: 200, connection: 'close', body: '{"held":true}' });
    await stopping;
    expect(story.events).toEqual(['begun', 'drained', 'responded', 'database closed']);
  });

  it('is not ready during the grace period, but still serves and closes each connection after its response', async () => {
    expect((await send('/quick')).connection).toBe('keep-alive');
    const stopping = stopService(app, connections, { graceMs: 400, timeoutMs: 10_000 });
    expect(await send('/quick')).toEqual({ status: 200, connection: 'close', body: '{"quick":true}' });
    expect(await send('/health/ready')).toMatchObject({ status: 503, connection: 'close' });
    expect((await send('/health/live')).status).toBe(200);
    expect(story.events).toEqual([]);
    await stopping;
  });

  it('does not wait for idle or silent connections', async () => {
    const kept = new Agent({ keepAlive: true });
    await send('/quick', kept);
    const silent = connect(port, '127.0.0.1');
    const ended = new Promise<void>((resolve) =>
      silent.on('close', () => resolve()).on('error', () => undefined),
    );
    await new Promise<void>((resolve) => silent.once('connect', () => resolve()));
    const startedMs = performance.now();
    await stopService(app, connections, { graceMs: 0, timeoutMs: 20_000 });
    await ended;
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    kept.destroy();
  });

  it('abandons a response that takes longer than the limit', async () => {
    const [inFlight] = await begunRequest();
    const cutOff = expect(inFlight).rejects.toThrow(/socket hang up|ECONNRESET/);
    await stopService(app, connections, { graceMs: 0, timeoutMs: 100 });
    await cutOff;
    expect(story.events).toEqual(['begun', 'drained', 'database closed']);
    story.release();
  });
});
