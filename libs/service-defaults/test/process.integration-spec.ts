import { join } from 'node:path';
import { eventually, findFreePorts, permitFaults, runProcess } from '@platform/testing';
import type { RunningProcess } from '@platform/testing';

describe('a service process', () => {
  // These processes log errors on purpose: one drain hook fails, and some processes cannot start.
  beforeEach(permitFaults);

  let running: RunningProcess;
  let origin: string;
  let metricsOrigin: string;

  async function start(env: Record<string, string> = {}): Promise<void> {
    const [port, metricsPort] = await findFreePorts(2);
    origin = `http://127.0.0.1:${port}`;
    metricsOrigin = `http://127.0.0.1:${metricsPort}`;
    running = await runProcess({
      entry: join(__dirname, 'service-process.cjs'),
      env: { PORT: String(port), METRICS_PORT: String(metricsPort), LOG_LEVEL: 'info', ...env },
      readyUrl: `${origin}/health/ready`,
    });
  }

  afterEach(async () => {
    if (running.child.exitCode === null) await running.stop('SIGKILL');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'finishes the request in flight and exits with code 0 after %s',
    async (signal) => {
      await start();
      const inFlight = fetch(`${origin}/held`);
      await eventually(() => expect(running.output()).toContain('"begun"'));
      const exited = running.stop(signal);
      await eventually(() => expect(running.output()).toContain(`${signal} received`));
      expect((await inFlight).status).toBe(200);
      expect(await exited).toBe(0);
      expect(running.output().trim().split('\n').at(-1)).toContain('"stopped"');
    },
  );

  it('keeps serving and exits normally after the reader of its log has gone', async () => {
    await start();
    running.child.stdout!.destroy();
    expect((await fetch(`${origin}/nowhere`)).status).toBe(404);
    // A drain hook fails and logs at `error`, which flushes the log at once.
    expect(await running.stop()).toBe(0);
  });

  it.each(['127.0.0.1', '0.0.0.0'])('logs the address that it listens on: %s', async (host) => {
    await start({ HOST: host });
    const line = `listening on ${host} port ${new URL(origin).port}`;
    await eventually(() => expect(running.output()).toContain(line));
  });

  it('serves metrics at METRICS_HOST only', async () => {
    await start({ HOST: '127.0.0.1', METRICS_HOST: '127.0.0.2' });
    const { port } = new URL(metricsOrigin);
    const response = await fetch(`http://127.0.0.2:${port}/metrics`);
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('process_')]);
    await expect(fetch(`${metricsOrigin}/metrics`)).rejects.toThrow('fetch failed');
    expect((await fetch(`${origin}/health/live`)).status).toBe(200);
  });

  it('writes one line per request, with the trace and without the query', async () => {
    await start();
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, authorization: 'Bearer sesame' };
    await fetch(`${origin}/quick?bearerTokenOverride=open-sesame&pageSize=5`, { headers });
    await fetch(`${origin}/nowhere/eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl`);
    // A polled route is logged at debug.
    await fetch(`${origin}/polled`);
    await running.stop();
    const lines = running
      .output()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'request');
    expect(lines).toMatchObject([
      {
        method: 'GET',
        url: '/quick?bearerTokenOverride&pageSize',
        status: 200,
        traceId,
        service: 'stopping',
        level: 'info',
      },
      { method: 'GET', url: '/nowhere/[redacted]', status: 404 },
    ]);
    expect(running.output()).not.toContain('sesame');
  });

  it('serves metrics by route template, on their own port only', async () => {
    await start({ LOG_LEVEL: 'warn' });
    await fetch(`${origin}/quick/`);
    await fetch(`${origin}/nowhere/1`);
    const text = await (await fetch(`${metricsOrigin}/metrics`)).text();
    expect(text).toContain('http_request_duration_seconds_count{method="GET",route="/quick",status="200"} 1');
    expect(text).toContain(
      'http_request_duration_seconds_count{method="*",route="unmatched",status="404"} 1',
    );
    expect(text).toContain(
      'http_request_duration_seconds_bucket{le="+Inf",method="GET",route="/quick",status="200"} 1',
    );
    expect(text).toContain('process_resident_memory_bytes');
    expect((await fetch(`${origin}/metrics`)).status).toBe(404);
    expect(running.output()).toBe('');
  });

  it('logs the error and exits with code 1 when its port is in use', async () => {
    await start();
    const second = await runProcess({
      entry: join(__dirname, 'service-process.cjs'),
      env: { PORT: new URL(origin).port, METRICS_PORT: '0', LOG_LEVEL: 'info' },
    });
    expect(await second.exited).toBe(1);
    expect(second.output()).toContain('EADDRINUSE');
  });

  it('lists every wrong variable, without its value or a stack trace, and exits with code 1', async () => {
    running = await runProcess({
      entry: join(__dirname, 'service-process.cjs'),
      env: { PORT: '99999', METRICS_PORT: 'sesame', LOG_LEVEL: 'loud' },
    });
    expect(await running.exited).toBe(1);
    const line = JSON.parse(running.output()) as { level: string; msg: string; problems: object };
    expect(line).toMatchObject({ level: 'fatal', msg: 'invalid configuration' });
    expect(Object.keys(line.problems)).toEqual(['PORT', 'METRICS_PORT', 'LOG_LEVEL']);
    expect(running.output()).not.toMatch(/sesame|99999|loud\b|node:internal|\n {4}at /);
  });
});
