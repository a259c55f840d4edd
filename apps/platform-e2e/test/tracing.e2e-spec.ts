import { randomBytes } from 'node:crypto';
import { eventually, startTraceCollector } from '@platform/testing';
import type { CollectedSpan, TraceCollector } from '@platform/testing';
import { TaskApi, logIn } from '../src/api';
import { DEVELOPMENT_PASSWORD } from '#platform/environments.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { startPlatform } from '../src/platform';

const JOURNEY_TIMEOUT_MS = 90_000;
const CALLER = '00f067aa0ba902b7';

describe('one trace', () => {
  const traceId = randomBytes(16).toString('hex');
  const headers = { traceparent: `00-${traceId}-${CALLER}-01`, connection: 'close' };
  let collector: TraceCollector;
  let platform: TestPlatform;

  /** A caller's journey: sign in, list facilities, create a schedule, complete its first instance. */
  beforeAll(async () => {
    collector = await startTraceCollector();
    platform = await startPlatform({
      variables: () => ({
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
        OTEL_BSP_SCHEDULE_DELAY: '100',
        TRACE_PARENT_TRUSTED: 'true',
      }),
    });
    const token = await logIn(platform.url('auth'), 'carl.customer', headers);
    await fetch(`${platform.url('auth')}/auth/buid/77/facility-access`, {
      headers: { ...headers, authorization: `Bearer ${token}` },
    });
    const task = new TaskApi(platform.url('task'), token, headers);
    const scheduleId = await task.createSchedule();
    // Polled outside the trace, because the number of requests depends on the machine.
    const observer = new TaskApi(platform.url('task'), token);
    const [instance] = await eventually(async () => {
      const found = await observer.instances(scheduleId);
      expect(found.length).toBeGreaterThanOrEqual(29);
      return found;
    });
    await task.complete(instance?.taskInstanceId ?? '');
  }, JOURNEY_TIMEOUT_MS);

  afterAll(async () => {
    await platform.stop();
    await collector.close();
  }, JOURNEY_TIMEOUT_MS);

  /** Returns the log lines of a program in this trace. */
  function linesOf(program: string): string[] {
    return [...platform.logs()]
      .filter(([name]) => name.includes(program))
      .flatMap(([, log]) => log.split('\n'))
      .filter((line) => line.includes(`"traceId":"${traceId}"`));
  }

  it.each([
    ['auth-service', /"url":"\/auth\/token\/user"/],
    ['auth-service', /"url":"\/auth\/buid\/77\/facility-access"/],
    ['customers', /GET \/business-units\/77\/facility-access 200/],
    ['task-service', /"method":"POST","url":"\/Schedules"/],
    ['task-service', /published Platform\.Contracts:ScheduleCreatedEvent/],
    ['scheduling', /consumed ScheduleCreatedEvent/],
    ['scheduling', /published Platform\.Contracts:IScheduleCreatedEvent/],
    ['task-service', /consumed IScheduleCreatedEvent/],
    ['task-service', /published Platform\.Contracts:TaskInstanceCompletedEvent/],
    ['completion-receiver', /consumed TaskInstanceCompletedEvent/],
  ])('is found in the log of %s with %s', async (program, what) => {
    await eventually(() => {
      expect(linesOf(program).filter((line) => what.test(line))).toHaveLength(1);
    });
  });

  it('connects the spans of all services, each under its cause', async () => {
    const spans = await eventually(() => {
      const found = collector.spans().filter((span) => span.traceId === traceId);
      for (const name of [
        'POST /auth/token/user',
        'POST /Schedules',
        'process task-service.schedule-created',
        'publish Platform.Contracts:TaskInstanceCompletedEvent',
      ])
        expect(found.map((span) => span.name)).toContain(name);
      return found;
    });
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const pathOf = ({ name, parentSpanId }: CollectedSpan): string[] => {
      const parent = byId.get(parentSpanId);
      return parent === undefined ? [parentSpanId, name] : [...pathOf(parent), name];
    };
    // The root of all spans is the caller's own span.
    expect(new Set(spans.map((span) => pathOf(span)[0]))).toEqual(new Set([CALLER]));
    const consumed = spans.find(({ name }) => name === 'process task-service.schedule-created');
    // The scheduling service in between records no spans and forwards the trace context unchanged.
    expect(consumed && pathOf(consumed)).toEqual([
      CALLER,
      'POST /Schedules',
      'publish Platform.Contracts:ScheduleCreatedEvent',
      'process task-service.schedule-created',
    ]);
    const request = spans.find(({ name, service }) => name === 'GET' && service === 'auth-service');
    expect(request && pathOf(request).slice(1)).toEqual([
      'GET /auth/buid/:businessUnitId/facility-access',
      'GET',
    ]);
    expect(spans.filter(({ hasFailed }) => hasFailed)).toEqual([]);
  });

  it('shows no password, token or name of a person to the collector', () => {
    const sent = collector.exports.map(({ body }) => body.toString()).join('\n');
    expect(sent).toContain(traceId);
    for (const secret of [DEVELOPMENT_PASSWORD, 'eyJ', 'carl.customer']) expect(sent).not.toContain(secret);
  });
});
