import { TaskInstanceGenerationRequested } from '@platform/contracts';
import { newTraceId, recordSpansWith, traceIdOf } from '@platform/service-defaults';
import { SpanNotes, bearer, eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const CALLER = '00f067aa0ba902b7';

describe('traces of the task service', () => {
  let service: TaskFixture;
  let notes: SpanNotes;

  beforeAll(async () => {
    service = await startTaskService({ env: { TRACE_PARENT_TRUSTED: 'true' } });
    await service.watch(TaskInstanceGenerationRequested);
  }, 40_000);

  afterAll(() => service.close());

  beforeEach(() => {
    notes = new SpanNotes();
    recordSpansWith(notes);
  });

  afterEach(() => {
    recordSpansWith(null);
  });

  it('reach auth-service in the request for the facilities of a caller', async () => {
    const traceId = newTraceId();
    service.auth.identity = { facilities: [501] };
    await service.api
      .get('/Schedules')
      .set(bearer({ facilities: [], overflow: ['facilities'] }))
      .set('traceparent', `00-${traceId}-${CALLER}-01`)
      .expect(200);
    const [request, ...calls] = notes.of(traceId);
    expect(request).toMatchObject({ name: 'GET /Schedules', kind: 'server', parentSpanId: CALLER });
    const sent = service.auth.traceparents['/auth/me'];
    const lookup = calls.find(({ spanId }) => sent === `00-${traceId}-${spanId}-01`);
    expect(lookup).toMatchObject({ name: 'GET', kind: 'client', parentSpanId: request?.spanId });
  });

  it('start with each fire of a trigger, and link to the request that created the trigger', async () => {
    const traceId = newTraceId();
    await service.api
      .post('/commands/scheduleRecurringTaskInstanceGeneration')
      .set(PARTNER)
      .set('traceparent', `00-${traceId}-${CALLER}-01`)
      .send({ facilityId: 501, schedule: '* * * * *', timeZone: 'UTC' })
      .expect(200);
    expect(notes.of(traceId).map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(['server', 'client', 'consumer']),
    );
    await service.database.query(
      `UPDATE task.triggers SET next_fire_at = date_trunc('minute', now()) - interval '1 minute'`,
    );
    // Any change of a trigger wakes the scheduler.
    await service.api
      .post('/commands/scheduleRecurringTaskInstanceGeneration')
      .set(PARTNER)
      .send({ facilityId: 502, schedule: '0 6 * * *', timeZone: 'UTC' })
      .expect(200);
    const fire = await eventually(() => {
      const found = notes.spans.find(({ name }) => name === 'fire GenerateTaskInstancesSchedule');
      if (found === undefined) throw new Error('nothing was fired');
      return found;
    });
    expect(fire).toMatchObject({ parentSpanId: undefined, linkedTraceIds: [traceId], hasEnded: true });
    expect(fire.traceId).not.toBe(traceId);
    await eventually(() => {
      expect(notes.of(fire.traceId)).toMatchObject([
        { kind: 'internal' },
        { kind: 'producer', parentSpanId: fire.spanId },
        { kind: 'consumer', name: 'process task-service.task-instance-generation' },
      ]);
    });
  });

  it('are stored with the event, and the relay publishes each event in its own trace', async () => {
    const traceIds = [newTraceId(), newTraceId()];
    await Promise.all(
      traceIds.map((traceId) =>
        service.api
          .post('/Schedules')
          .set(PARTNER)
          .set('traceparent', `00-${traceId}-${CALLER}-01`)
          .send({ facilityId: 501, name: 'Traced', schedule: '0 6 * * *', timeZone: 'UTC' })
          .expect(201),
      ),
    );
    // No queue is bound to ScheduleCreatedEvent here, so the broker returns it and it stays in the outbox.
    const rows = await eventually(async () => {
      const found = await service.database.query<{
        trace_headers: { traceparent: string };
        attempts: number;
      }>(`SELECT trace_headers, attempts FROM task.outbox WHERE message_type = 'ScheduleCreatedEvent'`);
      expect(found).toHaveLength(2);
      expect(found.some(({ attempts }) => attempts > 0)).toBe(true);
      return found;
    });
    const stored = rows.map(({ trace_headers: { traceparent } }) => traceIdOf(traceparent));
    expect(new Set(stored)).toEqual(new Set(traceIds));
    for (const traceId of traceIds) {
      const request = notes.of(traceId).find(({ kind }) => kind === 'server');
      const published = notes.of(traceId).filter(({ kind }) => kind === 'producer');
      for (const { parentSpanId } of published) expect(parentSpanId).toBe(request?.spanId);
    }
    expect(
      notes.spans.some(({ kind, failure }) => kind === 'producer' && failure === 'MessageReturnedError'),
    ).toBe(true);
  });
});
