import { gunzipSync } from 'node:zlib';
import { eventually, findFreePorts, permitFaults, startTraceCollector } from '@platform/testing';
import type { CollectedSpan, TraceCollector } from '@platform/testing';
import { newTraceId } from '../src';
import { startTracedService } from './traced-service';
import type { TracedService } from './traced-service';

const CALLER = '00f067aa0ba902b7';
const SERVER = 2;
const CLIENT = 3;
const START_TIMEOUT_MS = 30_000;

function callerHeaders(traceId: string, flags = '01'): Record<string, string> {
  return { traceparent: `00-${traceId}-${CALLER}-${flags}`, tracestate: 'vendor=1' };
}

describe('a service that records traces', () => {
  let collector: TraceCollector;
  let service: TracedService;

  beforeAll(async () => {
    collector = await startTraceCollector();
    service = await startTracedService({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=k',
      OTEL_BSP_SCHEDULE_DELAY: '20',
      TRACE_PARENT_TRUSTED: 'true',
    });
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    await service.close();
    await collector.close();
  });

  function collected(traceId: string, count: number): Promise<CollectedSpan[]> {
    return eventually(() => {
      const spans = collector.spans().filter((span) => span.traceId === traceId);
      expect(spans).toHaveLength(count);
      return spans;
    });
  }

  it("exports the request as a child of the caller and the service's own call as a child of the request", async () => {
    const traceId = newTraceId();
    await service.get('/people/jane?token=sesame', callerHeaders(traceId));
    const spans = await collected(traceId, 2);
    const server = spans.find(({ kind }) => kind === SERVER);
    const client = spans.find(({ kind }) => kind === CLIENT);
    expect(server).toMatchObject({
      service: 'traced',
      parentSpanId: CALLER,
      name: 'GET /people/:name',
      attributes: { 'http.request.method': 'GET', 'http.route': '/people/:name' },
      hasFailed: false,
    });
    expect(client).toMatchObject({
      parentSpanId: server?.spanId,
      name: 'GET',
      attributes: { 'server.address': '127.0.0.1' },
      hasFailed: true,
    });
    expect(service.downstream.at(-1)).toMatchObject({
      traceparent: `00-${traceId}-${String(client?.spanId)}-01`,
      tracestate: 'vendor=1',
      accept: 'application/json',
    });
    expect(collector.exports[0]).toMatchObject({ path: '/v1/traces', headers: { 'api-key': 'k' } });
    expect(collector.exports.map(({ body }) => body.toString()).join()).not.toMatch(/jane|sesame/);
  });

  it('writes the trace and the span into every line about a request', async () => {
    const traceId = newTraceId();
    await service.get('/people/jane', callerHeaders(traceId));
    const server = (await collected(traceId, 2)).find(({ kind }) => kind === SERVER);
    await eventually(() => {
      const lines = service.running.output().split('\n');
      const aboutTrace = lines
        .filter((line) => line.includes(traceId))
        .map((line) => JSON.parse(line) as object);
      expect(aboutTrace).toMatchObject([
        { msg: 'calling', traceId, spanId: server?.spanId },
        { msg: 'request', traceId, spanId: server?.spanId },
      ]);
    });
  });

  it('exports a failure by its status, without its text', async () => {
    permitFaults();
    const traceId = newTraceId();
    expect((await service.get('/broken', callerHeaders(traceId))).status).toBe(500);
    expect(await collected(traceId, 1)).toMatchObject([
      { hasFailed: true, attributes: { 'error.type': '500' } },
    ]);
    expect(collector.exports.map(({ body }) => body.toString()).join()).not.toContain('jane');
  });

  it('gives a new trace the id that its problem shows', async () => {
    const { traceId } = (await (await service.get('/nowhere')).json()) as { traceId: string };
    expect(await collected(traceId, 1)).toMatchObject([{ parentSpanId: '', name: 'GET' }]);
  });

  it('records neither probes nor unsampled requests, but passes their trace on', async () => {
    const traceId = newTraceId();
    await service.get('/health/live', callerHeaders(traceId));
    await service.get('/people/jane', callerHeaders(traceId, '00'));
    await service.get('/quick', callerHeaders(traceId));
    expect(await collected(traceId, 1)).toMatchObject([{ name: 'GET /quick' }]);
    expect(service.downstream.at(-1)?.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`));
  });

  it('sends an unsampled trace with a poll', async () => {
    await service.get('/poll');
    expect(service.downstream.at(-1)?.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });
});

describe('a service that does not trust its callers', () => {
  it(
    'samples independently of the flag and id that they send, and links their traces',
    async () => {
      const collector = await startTraceCollector();
      const start = (ratio: string): Promise<TracedService> =>
        startTracedService({
          OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
          OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
          OTEL_BSP_SCHEDULE_DELAY: '20',
          OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
          OTEL_TRACES_SAMPLER_ARG: ratio,
        });
      const never = await start('0');
      // The sampler compares the trace id with the ratio; this id is below every ratio.
      const lowest = `${'0'.repeat(31)}1`;
      for (let count = 0; count < 50; count += 1) await never.get('/quick', callerHeaders(lowest));
      await never.running.stop();
      expect(collector.spans()).toEqual([]);
      await never.close();

      const always = await start('1');
      const traceId = newTraceId();
      const response = await always.get('/nowhere', callerHeaders(traceId, '00'));
      const problem = (await response.json()) as { traceId: string };
      expect(problem.traceId).not.toBe(traceId);
      const spans = await eventually(() => {
        const found = collector.spans().filter((span) => span.traceId === problem.traceId);
        expect(found).toHaveLength(1);
        return found;
      });
      expect(spans).toMatchObject([{ parentSpanId: '', linkedTraceIds: [traceId] }]);
      await always.close();
      await collector.close();
    },
    START_TIMEOUT_MS,
  );
});

describe('a service that stops', () => {
  it(
    'exports the remaining spans, in protobuf by default, and compressed if configured',
    async () => {
      const collector = await startTraceCollector();
      const service = await startTracedService({
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_BSP_SCHEDULE_DELAY: '600000',
        TRACE_PARENT_TRUSTED: 'true',
        OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      });
      const traceId = newTraceId();
      await service.get('/quick', callerHeaders(traceId));
      expect(collector.exports).toEqual([]);
      expect(await service.running.stop()).toBe(0);
      expect(collector.exports).toMatchObject([{ contentType: 'application/x-protobuf' }]);
      const body = gunzipSync(collector.exports[0]?.body ?? '');
      expect(body.includes(Buffer.from(traceId, 'hex'))).toBe(true);
      expect(service.running.output()).toContain('the SDK was loaded');
      await service.close();
      await collector.close();
    },
    START_TIMEOUT_MS,
  );
});

describe('a collector that', () => {
  it.each(['refuses connections', 'never responds'])(
    '%s delays neither requests nor a stop',
    async (fault) => {
      const silent = await startTraceCollector({ isSilent: true });
      const [port] = (await findFreePorts(1)) as [number];
      const closedUrl = `http://127.0.0.1:${String(port)}`;
      const service = await startTracedService({
        OTEL_EXPORTER_OTLP_ENDPOINT: fault === 'never responds' ? silent.url : closedUrl,
        OTEL_BSP_SCHEDULE_DELAY: '20',
        OTEL_BSP_MAX_QUEUE_SIZE: '50',
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10',
      });
      // Ten times the queue's capacity. Requests that waited for the collector would wait for its timeout of
      // 10 s each.
      const startedMs = performance.now();
      for (let round = 0; round < 20; round += 1) {
        const responses = await Promise.all(Array.from({ length: 25 }, () => service.get('/quick')));
        expect(responses.every(({ status }) => status === 200)).toBe(true);
      }
      expect(performance.now() - startedMs).toBeLessThan(9_000);
      const stoppedMs = performance.now();
      expect(await service.running.stop()).toBe(0);
      expect(performance.now() - stoppedMs).toBeLessThan(9_000);
      await service.close();
      await silent.close();
    },
    START_TIMEOUT_MS,
  );
});

describe('a service that records no traces', () => {
  it(
    'passes the trace on unchanged and never loads the SDK',
    async () => {
      const service = await startTracedService();
      const headers = callerHeaders(newTraceId());
      await service.get('/people/jane', headers);
      expect(service.downstream).toMatchObject([headers]);
      await service.close();
      expect(service.running.output()).toContain('the SDK was not loaded');
      expect(service.running.output()).not.toContain('spanId');
    },
    START_TIMEOUT_MS,
  );
});
