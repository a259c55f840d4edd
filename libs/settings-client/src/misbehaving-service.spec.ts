import type { IncomingMessage, ServerResponse } from 'node:http';
import { findFreePorts, startHttpDouble } from '@platform/testing';
import type { HttpDouble } from '@platform/testing';
import { REAL_TIME } from './transport';
import { SettingsClient } from './settings-client';

type Behaviour = (request: IncomingMessage, response: ServerResponse) => void;

const VALUE = '{"a":1.0}';
const respond: Behaviour = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(VALUE);
};
const fail =
  (status: number, headers: Record<string, string> = {}): Behaviour =>
  (_request, response) => {
    response
      .writeHead(status, { 'content-type': 'application/problem+json', ...headers })
      .end('{"type":"about:blank"}');
  };

describe('SettingsClient and a service that misbehaves', () => {
  let service: HttpDouble;
  let script: Behaviour[] = [];
  let requests: { method: string | undefined; key: string | undefined }[] = [];
  let waits: number[] = [];
  // Skips and records waits before retries. Timeouts of attempts are real.
  const time = {
    ...REAL_TIME,
    random: () => 0,
    sleep: (durationMs: number, signal?: AbortSignal) => {
      if (durationMs === LIMIT_MS) return REAL_TIME.sleep(durationMs, signal);
      waits.push(durationMs);
      return Promise.resolve();
    },
  };
  // Longer than any response takes on a machine busy with other suites.
  const LIMIT_MS = 600;
  const newClient = (baseUrl = service.url) =>
    new SettingsClient({
      baseUrl,
      token: 't',
      attemptTimeoutMs: LIMIT_MS,
      time,
    });

  beforeAll(async () => {
    service = await startHttpDouble((request, response) => {
      const key = request.headers['idempotency-key'] as string | undefined;
      requests.push({ method: request.method, key });
      request.resume();
      const behaviour = script.length > 1 ? script.shift() : script[0];
      behaviour?.(request, response);
    });
  });
  beforeEach(() => {
    [script, requests, waits] = [[], [], []];
  });
  afterAll(() => service.close());

  it.each<[string, Behaviour]>([
    ['resets the connection', (request) => request.socket.resetAndDestroy()],
    ['closes without a response', (request) => request.socket.destroy()],
    ['never responds', () => undefined],
    [
      'sends the headers and then nothing',
      (_request, response) => response.writeHead(200, { 'content-length': '9' }).flushHeaders(),
    ],
    [
      'disconnects in the middle of the body',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
        response.write(VALUE, () => response.destroy());
      },
    ],
    [
      'sends the body without end, a byte at a time',
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const dribble = setInterval(() => response.write(' '), 20);
        response.on('close', () => clearInterval(dribble));
      },
    ],
    ['does not speak HTTP', (request) => request.socket.end('SSH-2.0\r\n\r\n')],
    ['responds 503', fail(503)],
    ['responds 429', fail(429)],
  ])('gets the value from a service that first %s twice', async (_case, behaviour) => {
    script = [behaviour, behaviour, respond];
    expect(await newClient().getValueText('S', 'n')).toBe(VALUE);
    expect(requests).toHaveLength(3);
    expect(waits).toEqual([100, 200]);
  });

  it('waits as long as Retry-After requests', async () => {
    script = [fail(429, { 'retry-after': '2' }), respond];
    await newClient().getValue('S', 'n');
    expect(waits).toEqual([2_000]);
  });

  it('retries a PUT whose outcome is unknown under the same idempotency key', async () => {
    const setting = '{"subsystemName":"S","settingName":"n","settingValue":1}';
    script = [
      (request) => request.socket.destroy(),
      (_request, response) =>
        response.writeHead(200, { 'content-type': 'application/json', etag: '"1"' }).end(setting),
    ];
    await newClient().putSetting('S', 'n', 1);
    expect(requests.map(({ method }) => method)).toEqual(['PUT', 'PUT']);
    expect(requests[0]?.key).toBe(requests[1]?.key);
  });

  it('gives up after six attempts on a port without a listener', async () => {
    const [port] = (await findFreePorts(1)) as [number];
    await expect(
      newClient(`http://127.0.0.1:${String(port)}`).getValueOrNull('S', 'n'),
    ).rejects.toMatchObject({
      name: 'SettingsUnavailableError',
      attempts: 6,
    });
    expect(waits).toEqual([100, 200, 400, 800, 1_600]);
  });

  it('does not mistake a wrong base URL for a missing setting', async () => {
    script = [fail(404)];
    await expect(newClient().getValueOrNull('S', 'n')).rejects.toMatchObject({
      name: 'SettingsHttpError',
      status: 404,
    });
    script = [
      (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Welcome'),
    ];
    await expect(newClient().getValueOrNull('S', 'n')).rejects.toMatchObject({
      name: 'SettingsProtocolError',
    });
  });
});
