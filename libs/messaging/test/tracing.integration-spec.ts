import { type INestApplicationContext, Injectable, Logger } from '@nestjs/common';
import {
  BusinessUnitChangeV1,
  TaskInstanceCompletedEvent,
  UnscheduleRecurringTaskInstanceGenerationRequest as UnscheduleRequest,
} from '@platform/contracts';
import {
  currentTrace,
  newTrace,
  newTraceId,
  recordSpansWith,
  traceOf,
  withTrace,
} from '@platform/service-defaults';
import type { TraceContext } from '@platform/service-defaults';
import {
  createTestBroker,
  eventually,
  SpanNotes,
  type TestBroker,
  type TestDatabase,
} from '@platform/testing';
import {
  Respond,
  connectBus,
  Consume,
  createEnvelope,
  exchangeName,
  MessagePublisher,
  messageTraceHeaders,
  type PlainBus,
  RequestClient,
} from '../src/index';
import { businessUnitChange, completedEvent } from './messages';
import { createInboxDatabase, NAMESPACE, SILENT, startMessagingApp, stopGracefully } from './messaging-app';

const QUEUE = 'suite.traced';
const EXCHANGE = exchangeName(NAMESPACE, TaskInstanceCompletedEvent.name);
const CALLER = '00f067aa0ba902b7';

/** The trace in which each handler ran, by facility. */
const seen = new Map<number, TraceContext | undefined>();
let failures = 0;

@Injectable()
class TracedConsumer {
  constructor(private readonly publisher: MessagePublisher) {}

  @Consume(TaskInstanceCompletedEvent, { queue: QUEUE, retryDelaysMs: [50] })
  async onCompleted({ facilityId }: TaskInstanceCompletedEvent): Promise<void> {
    await Promise.resolve();
    seen.set(facilityId, currentTrace());
    if (failures > 0) {
      failures -= 1;
      throw new TypeError('not now');
    }
    if (facilityId === 1)
      await this.publisher.publish(TaskInstanceCompletedEvent, completedEvent({ facilityId: 2 }));
  }

  @Respond(UnscheduleRequest, { queue: 'suite.traced-requests' })
  unschedule({ facilityId }: UnscheduleRequest) {
    seen.set(facilityId, currentTrace());
    return Promise.resolve({ succeeded: { facilityId, removed: true } });
  }
}

describe('the trace of a message', () => {
  let broker: TestBroker;
  let database: TestDatabase;
  let app: INestApplicationContext;
  let neighbour: PlainBus;

  beforeAll(async () => {
    [broker, database] = await Promise.all([createTestBroker(), createInboxDatabase()]);
    app = await startMessagingApp({
      databaseUrl: database.url,
      mainUrl: broker.url,
      handlers: [TracedConsumer],
    });
    neighbour = await connectBus({ url: broker.url, name: 'neighbour', logger: SILENT });
    const client = app.get(RequestClient);
    await eventually(() => client.request(UnscheduleRequest, request(0), { timeoutMs: 2_000 }), {
      timeoutMs: 20_000,
    });
    // Publishing fails until a queue receives the event.
    await eventually(() => neighbour.publish(TaskInstanceCompletedEvent, completedEvent({ facilityId: 10 })));
    await seenFor(10);
  }, 40_000);

  afterAll(async () => {
    await neighbour.close();
    await stopGracefully(app);
    await Promise.all([broker.drop(), database.drop()]);
  });

  beforeEach(() => {
    seen.clear();
  });

  afterEach(() => {
    recordSpansWith(null);
  });

  function request(facilityId: number): UnscheduleRequest {
    return { facilityId, requestedBy: 'personid:1001' };
  }

  function remoteTrace(traceId: string): TraceContext {
    const trace = traceOf({ traceparent: `00-${traceId}-${CALLER}-01`, tracestate: 'vendor=1' });
    if (trace === null) throw new Error('no trace');
    return trace;
  }

  function seenFor(facilityId: number): Promise<TraceContext> {
    return eventually(() => {
      const trace = seen.get(facilityId);
      if (trace === undefined) throw new Error(`nothing was consumed for ${String(facilityId)}`);
      return trace;
    });
  }

  it("is its publisher's and continues into what the consumer publishes, even if no spans are recorded", async () => {
    const traceId = newTraceId();
    await withTrace(remoteTrace(traceId), () =>
      neighbour.publish(TaskInstanceCompletedEvent, completedEvent({ facilityId: 1 })),
    );
    expect(await seenFor(1)).toMatchObject({ traceId, spanId: CALLER, flags: 1, state: 'vendor=1' });
    expect(await seenFor(2)).toMatchObject({ traceId, spanId: CALLER });
  });

  it('is a new one for a message without one', async () => {
    await broker.management.publish(EXCHANGE, {
      body: JSON.stringify(completedEvent({ facilityId: 3 })),
      properties: { message_id: newTraceId(), content_type: 'application/json' },
    });
    expect((await seenFor(3)).traceId).toMatch(/^[0-9a-f]{32}$/);
  });

  it.each([
    ['of the message', true],
    ['of the envelope', false],
  ])("is read from MassTransit's header %s", async (_where, inMessage) => {
    const traceId = newTraceId();
    const headers = { 'MT-Activity-Id': `00-${traceId}-${CALLER}-01` };
    const { body } = createEnvelope(TaskInstanceCompletedEvent, completedEvent({ facilityId: 4 }), {
      namespace: NAMESPACE,
      messageId: `${traceId.slice(0, 8)}-0000-4000-8000-000000000000`,
      sentAt: new Date('2026-01-05T10:00:00Z'),
      headers: inMessage ? {} : headers,
    });
    await broker.management.publish(EXCHANGE, {
      body,
      properties: { content_type: 'application/vnd.masstransit+json', headers: inMessage ? headers : {} },
    });
    expect(await seenFor(4)).toMatchObject({ traceId, spanId: CALLER });
  });

  it("is written into MassTransit's headers", async () => {
    const queue = await broker.management
      .bindQueue(exchangeName(NAMESPACE, BusinessUnitChangeV1.name), 'suite.observer')
      .then(() => 'suite.observer');
    const traceId = newTraceId();
    await withTrace(remoteTrace(traceId), () =>
      neighbour.publish(BusinessUnitChangeV1, businessUnitChange()),
    );
    const [message] = await eventually(async () => {
      const found = await broker.management.get(queue, 1);
      expect(found).toHaveLength(1);
      return found;
    });
    const traceparent = `00-${traceId}-${CALLER}-01`;
    expect(message?.headers).toMatchObject({ traceparent, 'MT-Activity-Id': traceparent });
    expect(JSON.parse(message?.body ?? '')).toMatchObject({ headers: { 'MT-Activity-Id': traceparent } });
  });

  it('has a span for the publish, with a child span per attempt to process', async () => {
    const notes = new SpanNotes();
    recordSpansWith(notes);
    const traceId = newTraceId();
    failures = 1;
    await withTrace(newTrace(traceId), () =>
      app.get(MessagePublisher).publish(TaskInstanceCompletedEvent, completedEvent({ facilityId: 5 })),
    );
    await eventually(() => {
      expect(notes.of(traceId).filter(({ hasEnded }) => hasEnded)).toHaveLength(3);
    });
    const [publish, first, second] = notes.of(traceId);
    expect(publish).toMatchObject({
      name: `publish ${EXCHANGE}`,
      kind: 'producer',
      attributes: { 'messaging.system': 'rabbitmq', 'messaging.destination.name': EXCHANGE },
      failure: null,
    });
    const attempt = { name: `process ${QUEUE}`, kind: 'consumer', parentSpanId: publish?.spanId };
    expect(first).toMatchObject({ ...attempt, failure: 'TypeError' });
    expect(second).toMatchObject({ ...attempt, failure: null });
  });

  it('makes the publish of a stored event a child of what stored it', async () => {
    const notes = new SpanNotes();
    recordSpansWith(notes);
    const cause = remoteTrace(newTraceId());
    const envelope = createEnvelope(TaskInstanceCompletedEvent, completedEvent({ facilityId: 6 }), {
      namespace: NAMESPACE,
      messageId: '00000000-0000-4000-8000-000000000006',
      sentAt: new Date('2026-01-05T10:00:00Z'),
      headers: withTrace(cause, () => messageTraceHeaders()),
    });
    await withTrace(newTrace(), () => app.get(MessagePublisher).publishEnvelope(envelope));
    await eventually(() => {
      expect(notes.of(cause.traceId)).toMatchObject([
        { kind: 'producer', parentSpanId: CALLER },
        { kind: 'consumer' },
      ]);
    });
  });

  it('continues from a request into its handler', async () => {
    const notes = new SpanNotes();
    recordSpansWith(notes);
    const traceId = newTraceId();
    await withTrace(newTrace(traceId), () =>
      app.get(RequestClient).request(UnscheduleRequest, request(7), { timeoutMs: 5_000 }),
    );
    const [requestSpan, processSpan] = notes.of(traceId);
    expect(requestSpan).toMatchObject({ kind: 'client', hasEnded: true, failure: null });
    expect(processSpan).toMatchObject({ kind: 'consumer', parentSpanId: requestSpan?.spanId });
    expect((await seenFor(7)).traceId).toBe(traceId);
  });

  it('is current when a parked message is logged', async () => {
    const traceId = newTraceId();
    const warned: (string | undefined)[] = [];
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => {
      warned.push(currentTrace()?.traceId);
    });
    await broker.management.publish(EXCHANGE, {
      body: '{"facilityId":"none"}',
      properties: { headers: { traceparent: `00-${traceId}-${CALLER}-01` } },
    });
    await eventually(() => {
      expect(warned).toContain(traceId);
    });
    warn.mockRestore();
  });
});
