import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Body, Controller, Get, Module, Param, Put } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { eventually } from '@platform/testing';
import { sleep } from '@platform/time';
import { createServiceApplication, Metrics, OpenConnections, stopService } from '../src';
import { stoppingConfig } from './stopping-app';

const MEBIBYTE = 1_024 * 1_024;
const STALL_MS = 1_000;
const PIPELINE_LIMIT = 16;
const WAITING_LIMIT = 16 * MEBIBYTE;
const BODIES_LIMIT = 4 * MEBIBYTE;

let handled = 0;

@Controller()
class BusyController {
  @Get('quick')
  quick(): object {
    handled += 1;
    return { quick: true };
  }

  @Get('bytes/:count')
  bytes(@Param('count') count: string): string {
    return 'x'.repeat(Number(count));
  }

  @Get('late')
  async late(): Promise<object> {
    await sleep(500);
    return { late: true };
  }

  @Put('body')
  put(@Body() body: object): object {
    return { members: Object.keys(body).length };
  }
}

@Module({ controllers: [BusyController] })
class BusyModule {}

describe('connections of a service', () => {
  let app: NestFastifyApplication;
  let connections: OpenConnections;
  let port: number;
  let log: string;
  const sockets: Socket[] = [];

  beforeEach(async () => {
    handled = 0;
    log = '';
    app = await createServiceApplication({
      name: 'busy',
      title: 'Busy',
      config: stoppingConfig({
        LOG_LEVEL: 'info',
        HTTP_STALL_LIMIT_MS: String(STALL_MS),
        HTTP_WAITING_BYTES_LIMIT: String(WAITING_LIMIT),
        HTTP_BODY_BYTES_LIMIT: String(BODIES_LIMIT),
      }),
      rootModule: BusyModule,
      logSink: { write: (line: string) => void (log += line), flushSync: () => undefined },
    });
    connections = new OpenConnections(app.getHttpServer());
    await app.listen(0, '127.0.0.1');
    port = (app.getHttpServer().address() as AddressInfo).port;
  });

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await app.close();
  });

  /** Opens a connection, sends `bytes`, and collects what it receives if `isReading`. */
  async function open(
    bytes: string,
    { isReading = true } = {},
  ): Promise<{ socket: Socket; text: () => string; closed: Promise<void> }> {
    const socket = connect(port, '127.0.0.1');
    sockets.push(socket);
    let text = '';
    if (isReading) socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined); // 'close' follows
    await new Promise<void>((resolve) => socket.once('connect', resolve));
    socket.write(bytes);
    return { socket, text: () => text, closed };
  }

  const get = (path: string, ...lines: string[]): string =>
    [`GET ${path} HTTP/1.1`, 'Host: a', ...lines, '', ''].join('\r\n');

  async function metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const found = await app.get(Metrics).registry.getSingleMetric(name)?.get();
    const value = found?.values.find((one) =>
      Object.entries(labels).every(([label, text]) => one.labels[label] === text),
    );
    return value?.value ?? NaN;
  }
  const refused = (reason: string): Promise<number> => metric('http_requests_refused_total', { reason });

  describe('whose clients do not read', () => {
    it('have a limit of waiting bytes, get 503 with Retry-After beyond it, and are closed after the stall limit', async () => {
      const large = get(`/bytes/${String(4 * MEBIBYTE)}`);
      const silent = await Promise.all(Array.from({ length: 40 }, () => open(large, { isReading: false })));
      await eventually(async () => expect(await refused('responses-waiting')).toBeGreaterThanOrEqual(30));
      expect(await metric('http_response_bytes_waiting')).toBeLessThanOrEqual(1.25 * WAITING_LIMIT);
      const response = await open(get(`/bytes/${String(4 * MEBIBYTE)}`, 'Connection: close'));
      await response.closed;
      expect(response.text()).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n/i);
      const small = await fetch(`http://127.0.0.1:${String(port)}/quick`);
      expect(small.status).toBe(200);
      await eventually(async () => expect(await refused('response-not-read')).toBe(4), { timeoutMs: 5_000 });
      await eventually(async () => expect(await metric('http_response_bytes_waiting')).toBe(0));
      expect(silent).toHaveLength(40);
      const after = await fetch(`http://127.0.0.1:${String(port)}/bytes/${String(4 * MEBIBYTE)}`);
      expect((await after.text()).length).toBe(4 * MEBIBYTE);
    });

    it('have a share of these bytes each: a pipelining one gets 503 beyond it while others are served', async () => {
      const share = WAITING_LIMIT / 4;
      const hog = get(`/bytes/${String(share / 2)}`).repeat(PIPELINE_LIMIT);
      await open(hog, { isReading: false });
      await eventually(async () => expect(await refused('responses-waiting')).toBe(PIPELINE_LIMIT - 2));
      expect(await metric('http_response_bytes_waiting')).toBeLessThan(1.25 * share);
      const others = await Promise.all(
        Array.from({ length: 3 }, () => fetch(`http://127.0.0.1:${String(port)}/bytes/${String(share)}`)),
      );
      expect(others.map(({ status }) => status)).toEqual([200, 200, 200]);
      const sizes = await Promise.all(others.map(async (other) => (await other.text()).length));
      expect(sizes).toEqual([share, share, share]);
      expect(await refused('responses-waiting')).toBe(PIPELINE_LIMIT - 2);
    });

    it('receive all of a large response even if they read slowly', async () => {
      const size = 12 * MEBIBYTE;
      const reader = await open(get(`/bytes/${String(4 * MEBIBYTE)}`), { isReading: false });
      let received = 0;
      reader.socket.on('data', (chunk: Buffer) => {
        received += chunk.length;
        reader.socket.pause();
      });
      const startedMs = performance.now();
      while (received < 4 * MEBIBYTE) {
        reader.socket.resume();
        await sleep(30);
      }
      expect(performance.now() - startedMs).toBeGreaterThan(1.5 * STALL_MS);
      expect(received).toBeLessThan(size);
      expect(await refused('response-not-read')).toBe(0);
    });
  });

  describe('that pipeline', () => {
    it('get responses up to the limit, then 429, and are closed', async () => {
      const { text, closed } = await open(get('/quick').repeat(5_000));
      await closed;
      const statuses = text().match(/HTTP\/1\.1 \d{3}/g);
      expect(statuses).toEqual([
        ...Array.from({ length: PIPELINE_LIMIT }, () => 'HTTP/1.1 200'),
        'HTTP/1.1 429',
      ]);
      expect(text()).toMatch(/retry-after: 1/i);
      expect(handled).toBe(PIPELINE_LIMIT);
      expect(await refused('too-many-in-flight')).toBe(1);
    });

    it('are served within the limit repeatedly', async () => {
      const { socket, text } = await open('');
      for (let round = 1; round <= 3; round += 1) {
        socket.write(get('/quick').repeat(PIPELINE_LIMIT));
        await eventually(() => expect(text().match(/HTTP\/1\.1 200/g)).toHaveLength(round * PIPELINE_LIMIT));
      }
    });

    it('are counted correctly over unroutable addresses', async () => {
      const { socket, text } = await open('');
      for (let round = 1; round <= 2 * PIPELINE_LIMIT; round += 1) {
        socket.write(get('/%zz'));
        await eventually(() => expect(text().match(/HTTP\/1\.1 400/g)).toHaveLength(round));
      }
    });
  });

  describe('that send slowly', () => {
    const half =
      'PUT /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{';

    it.each([
      ['stops', 0],
      ['continues at a few bytes per second', 1],
    ])('are closed with 408 when a body %s', async (_what, bytes) => {
      const { socket, text, closed } = await open(half);
      const timer = setInterval(() => socket.write(' '.repeat(bytes)), 200);
      await closed;
      clearInterval(timer);
      expect(text()).toMatch(/^HTTP\/1\.1 408 [^]*application\/problem\+json/);
      expect(await refused('too-slow')).toBe(1);
    });

    it('are served while the body keeps the minimum rate', async () => {
      const head =
        'PUT /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n{';
      const { socket, text } = await open(head);
      for (let part = 0; part < 10; part += 1) {
        socket.write(' '.repeat(1_999));
        await sleep(200);
      }
      socket.write(`${' '.repeat(8)}}`);
      await eventually(() => expect(text()).toMatch(/^HTTP\/1\.1 200 /));
    });

    it('are closed with 408 when their headers take longer than 10 s', async () => {
      const { socket, text, closed } = await open('GET /quick HTTP/1.1\r\nHost: a\r\nX: ');
      const timer = setInterval(() => socket.write('x'), 500);
      await closed;
      clearInterval(timer);
      expect(text()).toMatch(/^HTTP\/1\.1 408 /);
    }, 20_000);

    it.each([
      ['half a body', half],
      ['half of the headers', 'GET /quick HTTP/1.1\r\nHo'],
    ])('with %s do not delay a stop', async (_what, bytes) => {
      await open(bytes);
      const startedMs = performance.now();
      await stopService(app, connections, { graceMs: 0, timeoutMs: 25_000 });
      expect(performance.now() - startedMs).toBeLessThan(6_000);
    });
  });

  describe('that send a body in small parts', () => {
    const chunked = (method: string, path: string): string =>
      [
        `${method} ${path} HTTP/1.1`,
        'Host: a',
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
        '',
        '',
      ].join('\r\n');
    const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${' '.repeat(bytes)}\r\n`;
    const FLOOD = chunk(1).repeat(50_000);

    it.each([
      ['that is read', chunked('PUT', '/body')],
      ['at no address', chunked('PUT', '/nowhere')],
      ['of an unsupported method', chunked('DELETE', '/quick')],
      ['of another type', chunked('PUT', '/body').replace('application/json', 'text/plain')],
      ['of a GET', chunked('GET', '/late')],
      ['with extensions', chunked('PUT', '/body') + '1;a=b\r\n \r\n'.repeat(10_000)],
      ['with an end', `${chunked('PUT', '/body')}2\r\n{}\r\n${chunk(1).repeat(5_000)}0\r\n\r\n`],
      ['behind other requests', get('/quick').repeat(3) + chunked('PUT', '/body')],
    ])('are closed, and cost no memory: a body %s', async (_what, head) => {
      const { text, closed } = await open(head + FLOOD);
      await closed;
      expect(await refused('body-in-small-parts')).toBe(1);
      expect(text()).toMatch(/HTTP\/1\.1 4\d\d [^]*application\/problem\+json/);
      expect(text()).not.toContain('members');
      expect(await metric('http_request_body_bytes_arriving')).toBe(0);
    });

    it.each([
      ['an unknown address', chunked('PUT', '/nowhere').replace('application/json', 'text/plain'), 404],
      ['a body that is too large', chunked('PUT', '/body') + chunk(2 * MEBIBYTE), 413],
    ])('are closed when the parts follow the response to %s', async (_what, head, status) => {
      const { socket, text, closed } = await open(head);
      await eventually(() => expect(text()).toContain(`HTTP/1.1 ${String(status)} `));
      socket.write(FLOOD);
      await closed;
      expect(await refused('body-in-small-parts')).toBe(1);
    });

    it('are read no further after the limit of requests in flight', async () => {
      const { closed } = await open(get('/late').repeat(PIPELINE_LIMIT) + chunked('PUT', '/body') + FLOOD);
      await eventually(async () => expect(await refused('too-many-in-flight')).toBe(1));
      expect(await metric('http_request_body_bytes_arriving')).toBe(0);
      await closed;
    });

    it.each([
      ['a few very short ones', chunk(1).repeat(200)],
      ['many of some hundred bytes', chunk(100).repeat(5_000)],
    ])('are served when the parts are %s', async (_what, parts) => {
      const { text } = await open(`${chunked('PUT', '/body')}${parts}2\r\n{}\r\n0\r\n\r\n`);
      await eventually(() => expect(text()).toMatch(/^HTTP\/1\.1 200 /));
    });
  });

  describe('whose bodies do not end', () => {
    const SIZE = 900_000;
    const unfinished = `PUT /body HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${String(SIZE + 1)}\r\n\r\n${' '.repeat(SIZE)}`;

    it('have a limit of bytes together: the oldest gets 503 with Retry-After', async () => {
      const slow = await Promise.all(Array.from({ length: 12 }, () => open(unfinished)));
      await eventually(async () => expect(await refused('bodies-arriving')).toBeGreaterThanOrEqual(8));
      expect(await metric('http_request_body_bytes_arriving')).toBeLessThanOrEqual(BODIES_LIMIT);
      await eventually(() =>
        expect(
          slow.filter(({ text }) => /^HTTP\/1\.1 503 [^]*retry-after: 1\r\n/i.test(text())),
        ).toHaveLength(8),
      );
    });

    it('do not prevent others from sending theirs', async () => {
      for (let count = 0; count < 12; count += 1) await open(unfinished);
      await eventually(async () => expect(await refused('bodies-arriving')).toBeGreaterThanOrEqual(8));
      const response = await fetch(`http://127.0.0.1:${String(port)}/body`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text: 'x'.repeat(500_000) }),
      });
      expect(response.status).toBe(200);
    });

    it('are no longer counted once they have a response, are complete or have gone', async () => {
      const first = await open(unfinished);
      await eventually(async () =>
        expect(await metric('http_request_body_bytes_arriving')).toBeGreaterThanOrEqual(SIZE),
      );
      first.socket.write('7');
      await eventually(() => expect(first.text()).toMatch(/^HTTP\/1\.1 200 /));
      expect(await metric('http_request_body_bytes_arriving')).toBe(0);
      const second = await open(unfinished);
      await eventually(async () =>
        expect(await metric('http_request_body_bytes_arriving')).toBeGreaterThanOrEqual(SIZE),
      );
      second.socket.destroy();
      await eventually(async () => expect(await metric('http_request_body_bytes_arriving')).toBe(0));
      const third = await open(unfinished.replace('/body', '/nowhere').replace(String(SIZE + 1), '9000000'));
      await eventually(() => expect(third.text()).toMatch(/^HTTP\/1\.1 404 /));
      expect(await metric('http_request_body_bytes_arriving')).toBe(0);
    });
  });

  describe('that are refused before their route', () => {
    it.each([
      ['an unknown method', 'BREW / HTTP/1.1\r\nHost: a\r\n\r\n', 400, 'unknown-method'],
      ['a NUL in a header', get('/', 'X: a\0b'), 400, 'unreadable'],
      ['a bad escape', get('/%zz', 'Connection: close'), 400, 'bad-url'],
      ['an overlong parameter', get(`/bytes/${'1'.repeat(5_000)}`, 'Connection: close'), 414, 'url-too-long'],
      ['an unknown expectation', get('/quick', 'Expect: tea', 'Connection: close'), 417, 'expectation'],
      ['huge headers', get('/quick', `X: ${'x'.repeat(40_000)}`), 431, 'headers-too-large'],
    ])('count %s by its reason', async (_what, bytes, status, reason) => {
      const { text, closed } = await open(bytes);
      await closed;
      expect(text()).toMatch(new RegExp(`^HTTP/1\\.1 ${String(status)} [^]*application/problem\\+json`));
      expect(await refused(reason)).toBe(1);
      expect(log).toContain(`"refused":{"${reason}":1}`);
    });

    it('are logged at a limited rate', async () => {
      for (let count = 0; count < 50; count += 1) await (await open(get('/%zz', 'Connection: close'))).closed;
      expect(await refused('bad-url')).toBe(50);
      expect(log.match(/requests refused before their route/g)).toHaveLength(1);
    });

    it("get 400 for another version of HTTP, without a warning in the service's log", async () => {
      const { text, closed } = await open('GET /quick HTTP/2.0\r\nHost: a\r\nConnection: close\r\n\r\n');
      await closed;
      expect(text()).toMatch(/^HTTP\/1\.1 400 /);
      expect(log).not.toMatch(/"stack"|"level":"(warn|error)"/);
    });
  });
});
