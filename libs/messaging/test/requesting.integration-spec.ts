import { randomUUID } from 'node:crypto';
import { type INestApplicationContext, Injectable } from '@nestjs/common';
import { connect, type ConsumeMessage } from 'amqplib';
import {
  ScheduleRecurringTaskInstanceGenerationRequest as ScheduleRequest,
  UnscheduleRecurringTaskInstanceGenerationRequest as UnscheduleRequest,
} from '@platform/contracts';
import { HealthRegistry, Metrics } from '@platform/service-defaults';
import { createTestBroker, eventually, type TestBroker, type TestDatabase } from '@platform/testing';
import {
  Respond,
  type ConsumeContext,
  connectBus,
  MessageReturnedError,
  type PlainBus,
  RequestClient,
  RequestFaultedError,
  type RequestOutcome,
  RequestTimeoutError,
} from '../src/index';
import { ForeignClient } from './foreign-client';
import {
  createInboxDatabase,
  effects,
  NAMESPACE,
  SILENT,
  startMessagingApp,
  stopGracefully,
} from './messaging-app';

const EXCHANGE = `${NAMESPACE}:IUnscheduleRecurringTaskInstanceGenerationRequest`;
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const URN = `urn:message:${EXCHANGE}`;
const SUCCEEDED_URN = `urn:message:${NAMESPACE}:UnscheduleRecurringTaskInstanceGenerationSucceeded`;

type Outcome = RequestOutcome<
  { facilityId: number; removed: boolean },
  { facilityId: number; code: string; reason: string }
>;

@Injectable()
class Unscheduler {
  @Respond(UnscheduleRequest, { queue: 'suite.unschedule' })
  async unschedule({ facilityId }: UnscheduleRequest, { transaction }: ConsumeContext): Promise<Outcome> {
    await transaction.query('INSERT INTO effects (note) VALUES ($1)', [`unscheduled ${facilityId}`]);
    if (facilityId === 666) throw new Error('the trigger store is broken');
    if (facilityId < 0)
      return { failed: { facilityId, code: 'UnknownFacility', reason: 'there is no such facility' } };
    return { succeeded: { facilityId, removed: true } };
  }
}

describe('requests', () => {
  let broker: TestBroker;
  let database: TestDatabase;
  let app: INestApplicationContext;
  let neighbour: PlainBus;
  let foreign: ForeignClient;

  beforeAll(async () => {
    [broker, database] = await Promise.all([createTestBroker(), createInboxDatabase()]);
    app = await startMessagingApp({
      databaseUrl: database.url,
      mainUrl: broker.url,
      handlers: [Unscheduler],
    });
    neighbour = await connectBus({ url: broker.url, name: 'neighbour', logger: SILENT });
    const checks = app.get(HealthRegistry).readinessChecks;
    await eventually(() => Promise.all(checks.map((readiness) => readiness.check())));
  });

  beforeEach(async () => {
    await database.query('TRUNCATE messaging.effects, messaging.inbox');
    foreign = await ForeignClient.connect(broker.url, EXCHANGE);
  });

  afterEach(() => foreign.close());

  afterAll(async () => {
    await neighbour.close();
    await stopGracefully(app);
    await Promise.all([broker.drop(), database.drop()]);
  });

  it('leave a replica ready while the first request sets up the reply queue', async () => {
    const fresh = await connectBus({ url: broker.url, name: 'fresh', logger: SILENT });
    let hasResponse = false;
    const response = fresh
      .request(UnscheduleRequest, { facilityId: 501 }, { timeoutMs: 5_000 })
      .finally(() => (hasResponse = true));
    const states = new Set<boolean>();
    while (!hasResponse) {
      states.add(fresh.isReady());
      await new Promise((resolve) => setImmediate(resolve));
    }
    await response;
    expect([...states]).toEqual([true]);
    await fresh.close();
  });

  it('receive Succeeded or Failed, sent from this process and from others', async () => {
    const client = app.get(RequestClient);
    await expect(
      client.request(UnscheduleRequest, { facilityId: 501 }, { timeoutMs: 5_000 }),
    ).resolves.toEqual({
      succeeded: { facilityId: 501, removed: true },
    });
    await expect(
      neighbour.request(UnscheduleRequest, { facilityId: -1 }, { timeoutMs: 5_000 }),
    ).resolves.toEqual({
      failed: { facilityId: -1, code: 'UnknownFacility', reason: 'there is no such facility' },
    });
    expect(await effects(database)).toEqual(['unscheduled 501', 'unscheduled -1']);
  });

  it('each receive their own response when many are in flight', async () => {
    const facilityIds = Array.from({ length: 30 }, (_, index) => index + 1);
    const outcomes = await Promise.all(
      facilityIds.map((facilityId) =>
        neighbour.request(UnscheduleRequest, { facilityId }, { timeoutMs: 10_000 }),
      ),
    );
    expect(outcomes).toEqual(facilityIds.map((facilityId) => ({ succeeded: { facilityId, removed: true } })));
  });

  it('fail as faulted when the receiver fails, without lasting effects', async () => {
    const requested = neighbour.request(UnscheduleRequest, { facilityId: 666 }, { timeoutMs: 5_000 });
    await expect(requested).rejects.toThrow(RequestFaultedError);
    expect(await effects(database)).toEqual([]);
    await eventually(async () =>
      expect(await broker.management.get('suite.unschedule_error', 1)).toHaveLength(1),
    );
  });

  it('receive a fault under an id that another request had', async () => {
    const replies = `suite.replies.${randomUUID()}`;
    await foreign.listen(replies);
    const properties = { contentType: 'application/json', messageId: randomUUID(), replyTo: replies };
    await foreign.publish({ facilityId: 507 }, properties);
    const first = await foreign.response();
    await foreign.publish({ facilityId: 508 }, properties);
    const second = await foreign.response();
    expect(JSON.stringify(first.envelope)).toContain('UnscheduleRecurringTaskInstanceGenerationSucceeded');
    expect(JSON.stringify(second.envelope)).toContain('Fault');
    expect(JSON.stringify(second.envelope)).toContain('belongs to another message');
    await foreign.publish({ facilityId: 507 }, properties);
    expect((await foreign.response()).envelope['message']).toEqual(first.envelope['message']);
    expect(await effects(database)).toEqual(['unscheduled 507']);
    await eventually(async () =>
      expect(await broker.management.get('suite.unschedule_error', 1)).toHaveLength(1),
    );
  });

  it('fail at once without a receiving queue', async () => {
    const requested = neighbour.request(ScheduleRequest, { facilityId: 501 }, { timeoutMs: 20_000 });
    await expect(requested).rejects.toThrow(MessageReturnedError);
  });

  it('time out without a response', async () => {
    await broker.management.bindQueue(`${NAMESPACE}:${ScheduleRequest.name}`, 'suite.silent');
    const requested = neighbour.request(ScheduleRequest, { facilityId: 501 }, { timeoutMs: 300 });
    await expect(requested).rejects.toThrow(RequestTimeoutError);
  });

  it('of a MassTransit client receive the response at the exchange of its responseAddress', async () => {
    await foreign.listen('customers_bus_x1', 'customers_bus_x1');
    const request = masstransitRequest(`rabbitmq://localhost/vhost/customers_bus_x1?temporary=true`);
    await foreign.publish(request, { contentType: 'application/vnd.masstransit+json' });
    const { properties, envelope } = await foreign.response();
    expect(properties.contentType).toBe('application/vnd.masstransit+json');
    expect(envelope).toMatchObject({
      requestId: request.requestId,
      conversationId: request.conversationId,
      messageType: [SUCCEEDED_URN],
      message: { facilityId: 501, removed: true },
    });
  });

  it.each([
    ['a queue: address', 'queue:plain-replies', {}],
    ['an address that only a queue matches', 'rabbitmq://localhost/vhost/plain-replies', {}],
    ['AMQP reply-to', null, { replyTo: 'plain-replies' }],
  ])('receive the response at %s', async (_what, responseAddress, properties) => {
    await foreign.listen('plain-replies');
    const request = masstransitRequest(responseAddress);
    await foreign.publish(request, {
      ...properties,
      contentType: 'application/vnd.masstransit+json',
      correlationId: 'c-1',
    });
    const response = await foreign.response();
    expect(response.properties.correlationId).toBe('c-1');
    expect(response.envelope).toMatchObject({ message: { facilityId: 501, removed: true } });
  });

  it.each([
    ['responseAddress', { responseAddress: `queue:${'r'.repeat(300)}` }],
    ['requestId', { responseAddress: 'queue:plain-replies', requestId: 'r'.repeat(300) }],
  ])('receive the response even if their %s is too long for AMQP', async (_what, members) => {
    await foreign.listen('plain-replies');
    await foreign.publish({ ...masstransitRequest(null), ...members }, { replyTo: 'plain-replies' });
    expect((await foreign.response()).envelope).toMatchObject({ message: { removed: true } });
  });

  it.each([
    ['breaks its contract', '{"facilityId":"many"}', 'facilityId'],
    ['cannot be read', '{"facilityId":', 'the response cannot be read, the body is not JSON'],
  ])('fail as faulted when the response %s', async (_what, body, detail) => {
    const queue = `suite.nonsense.${randomUUID()}`;
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    await channel.assertQueue(queue, { exclusive: true });
    await channel.assertExchange(`${NAMESPACE}:${ScheduleRequest.name}`, 'fanout', { durable: true });
    await channel.bindQueue(queue, `${NAMESPACE}:${ScheduleRequest.name}`, '');
    await channel.consume(queue, (message) => {
      const { replyTo, correlationId } = message?.properties ?? {};
      const properties = { correlationId, type: ScheduleRequest.succeeded.name };
      channel.sendToQueue(replyTo, Buffer.from(body), properties);
    });
    const requested = neighbour.request(ScheduleRequest, { facilityId: 501 }, { timeoutMs: 5_000 });
    await expect(requested).rejects.toThrow(RequestFaultedError);
    await expect(requested).rejects.toThrow(detail);
    await connection.close();
  });

  it('in raw JSON receive the response at AMQP’s direct reply-to', async () => {
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    const received = new Promise<ConsumeMessage>((resolve) => {
      void channel.consume('amq.rabbitmq.reply-to', (message) => message && resolve(message), {
        noAck: true,
      });
    });
    const properties = {
      contentType: 'application/json',
      replyTo: 'amq.rabbitmq.reply-to',
      correlationId: 'raw-1',
    };
    channel.publish(EXCHANGE, '', Buffer.from('{"facilityId":7}'), properties);
    const { properties: responseProperties, content } = await received;
    await connection.close();
    expect(responseProperties.correlationId).toBe('raw-1');
    expect(JSON.parse(content.toString())).toMatchObject({
      messageType: [SUCCEEDED_URN],
      message: { facilityId: 7 },
    });
  });

  it('are carried out once but receive the response on each repetition', async () => {
    await foreign.listen('impatient');
    const request = masstransitRequest('queue:impatient');
    for (let copy = 0; copy < 3; copy += 1) await foreign.publish(request, {});
    for (let copy = 0; copy < 3; copy += 1) {
      expect((await foreign.response()).envelope).toMatchObject({
        requestId: request.requestId,
        message: { removed: true },
      });
    }
    expect(await effects(database)).toEqual(['unscheduled 501']);
  });

  it('are dropped unprocessed after their expiration time', async () => {
    await foreign.listen('impatient');
    const request = masstransitRequest('queue:impatient');
    await foreign.publish({ ...request, expirationTime: '2026-01-05T10:00:30.1234567Z' }, {});
    await foreign.publish(
      { ...masstransitRequest('queue:impatient'), expirationTime: '2999-01-01T00:00:00Z' },
      {},
    );
    const { envelope } = await foreign.response();
    expect(envelope['requestId']).not.toBe(request.requestId);
    expect(await effects(database)).toEqual(['unscheduled 501']);
    const expired = app.get(Metrics).counter('messaging_expired_total', '', ['queue', 'message']);
    expect((await expired.get()).values).toEqual([
      { labels: { queue: 'suite.unschedule', message: UnscheduleRequest.name }, value: 1 },
    ]);
    expect(await broker.management.get('suite.unschedule_error', 1)).toEqual([]);
  });

  it.each([
    ['a MassTransit envelope', (message: object) => ({ ...masstransitRequest('queue:faults'), message }), {}],
    ['raw JSON', (message: object) => message, { replyTo: 'faults', messageId: 'not-a-guid' }],
  ])('that break their contract receive a fault: %s', async (_what, body, properties) => {
    await foreign.listen('faults');
    await foreign.publish(body({ facilityId: '910' }), properties);
    const { envelope } = await foreign.response();
    expect(envelope).toMatchObject({
      conversationId: expect.stringMatching(GUID),
      messageType: expect.arrayContaining(['urn:message:MassTransit:Fault']),
      message: { exceptions: [{ exceptionType: 'InvalidMessageError' }] },
    });
    const { faultedMessageId } = envelope['message'] as { faultedMessageId?: string };
    if (faultedMessageId !== undefined) expect(faultedMessageId).toMatch(GUID);
    await eventually(async () =>
      expect(await broker.management.get('suite.unschedule_error', 1)).toHaveLength(1),
    );
  });

  it('in raw JSON with a message id that is no GUID are part of a conversation with a GUID', async () => {
    await foreign.listen('faults');
    await foreign.publish(
      { facilityId: 502 },
      { replyTo: 'faults', messageId: 'order-7', correlationId: 'c-7' },
    );
    const { envelope, properties } = await foreign.response();
    expect(properties.correlationId).toBe('c-7');
    expect(envelope).toMatchObject({
      conversationId: expect.stringMatching(GUID),
      message: { facilityId: 502 },
    });
  });

  it('whose sender has gone are still carried out and affect no other', async () => {
    await foreign.publish(masstransitRequest('rabbitmq://localhost/vhost/gone?temporary=true'), {});
    await eventually(async () => expect(await effects(database)).toEqual(['unscheduled 501']));
    await expect(
      neighbour.request(UnscheduleRequest, { facilityId: 1 }, { timeoutMs: 5_000 }),
    ).resolves.toHaveProperty('succeeded');
  });
});

/** Returns an envelope as MassTransit's request client writes it. */
function masstransitRequest(responseAddress: string | null): { requestId: string; conversationId: string } {
  const envelope = {
    messageId: randomUUID(),
    requestId: randomUUID(),
    conversationId: randomUUID(),
    sourceAddress: 'rabbitmq://localhost/vhost/customers_bus_x1?temporary=true',
    destinationAddress: `rabbitmq://localhost/vhost/${EXCHANGE}`,
    responseAddress,
    messageType: [URN],
    message: { facilityId: 501, requestedBy: null },
    sentTime: '2026-01-05T10:00:00.1234567Z',
    headers: {},
    host: { machineName: 'customers-1', massTransitVersion: '8.3.4.0' },
  };
  return envelope;
}
