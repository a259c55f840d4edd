import { randomUUID } from 'node:crypto';
import { ScheduledMessageEvent } from '@platform/contracts';
import { errorQueue, exchangeName } from '@platform/messaging';
import { eventually } from '@platform/testing';
import type { BrokerManagement, ReceivedMessage } from '@platform/testing';
import { QUEUES } from '../src/recurring-generation/queues';
import { NAMESPACE, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const REQUEST = 'IScheduleRecurringTaskInstanceGenerationRequest';
const REPLIES = 'CUSTOMERS_Api_bus_x1';
const FAULTS = 'CUSTOMERS_Api_faults';
const CONVERSATION = '181c0000-6393-3630-b1b7-08daf4e7c6db';

const urn = (name: string): string => `urn:message:${NAMESPACE}:${name}`;
const addressOf = (endpoint: string): string => `rabbitmq://localhost/vhost/${endpoint}?temporary=true`;

/**
 * Returns an envelope as MassTransit 8 sends it, following its published format: all members, null if unset.
 */
function massTransitEnvelope(messageType: string[], message: object, addresses: object = {}) {
  return {
    messageId: randomUUID(),
    requestId: null as string | null,
    correlationId: null,
    conversationId: CONVERSATION,
    initiatorId: null,
    sourceAddress: addressOf(REPLIES),
    destinationAddress: `rabbitmq://localhost/vhost/${NAMESPACE}:${REQUEST}`,
    responseAddress: null,
    faultAddress: null,
    messageType,
    message,
    expirationTime: null,
    sentTime: '2026-01-05T10:00:01.2345678Z',
    headers: { tenant: 'acme' },
    host: {
      machineName: 'customers-1',
      processName: 'Customers.Api',
      processId: 427,
      assembly: 'Customers.Api',
      assemblyVersion: '1.0.0.0',
      frameworkVersion: '8.0.11',
      massTransitVersion: '8.3.4.0',
      operatingSystemVersion: 'Unix 6.1.0.28',
    },
    ...addresses,
  };
}

describe('a MassTransit or plain AMQP client', () => {
  let service: TaskFixture;
  let main: BrokerManagement;
  let scheduling: BrokerManagement;

  const triggers = async (facilityId: number) => {
    const { body } = await service.api.get('/Triggers').query({ facilityId }).set(PARTNER).expect(200);
    return body.triggers;
  };
  const send = (bus: BrokerManagement, type: string, body: object, properties: object) =>
    bus.publish(exchangeName(NAMESPACE, type), {
      body: JSON.stringify(body),
      properties: { content_type: 'application/json', ...properties },
    });
  const sendWrapped = (bus: BrokerManagement, type: string, envelope: object) =>
    send(bus, type, envelope, { content_type: 'application/vnd.masstransit+json', delivery_mode: 2 });
  const take = (queue: string): Promise<ReceivedMessage> =>
    eventually(async () => {
      const [message] = await scheduling.get(queue, 1);
      if (message === undefined) throw new Error(`${queue} is empty`);
      return message;
    });
  const change = (facilityId: number) => ({
    eventId: randomUUID(),
    occurredAtUtc: '2026-01-05T10:00:00Z',
    businessUnitId: facilityId,
    facilityIds: [facilityId],
    changeType: 'Activated',
  });

  beforeAll(async () => {
    service = await startTaskService();
    main = service.brokers.main.management;
    scheduling = service.brokers.scheduling.management;
    await service.watch(ScheduledMessageEvent);
    // MassTransit receives through an exchange with the name of the queue.
    for (const endpoint of [REPLIES, FAULTS]) await scheduling.bindQueue(endpoint, endpoint);
  });
  afterAll(() => service.close());

  it('publishes in a MassTransit envelope with a foreign type and the contract that it implements', async () => {
    const types = ['urn:message:Customers.Internal:BusinessUnitActivated', urn('IBusinessUnitChangeV1')];
    const message = { ...change(951), timeZone: null, introducedLater: { nested: true } };
    await sendWrapped(main, 'IBusinessUnitChangeV1', massTransitEnvelope(types, message));
    await eventually(async () => expect(await triggers(951)).toHaveLength(1));
    const [announced] = await service.received(ScheduledMessageEvent, 1);
    expect(announced?.conversationId).toBe(CONVERSATION);
  });

  it('publishes raw JSON', async () => {
    await send(main, 'IBusinessUnitChangeV1', change(952), {});
    await eventually(async () => expect(await triggers(952)).toHaveLength(1));
  });

  it.each([
    ['Succeeded', { facilityId: 953 }, { facilityId: 953, scheduleName: 'facility-953', replaced: false }],
    ['Failed', { facilityId: 953, schedule: '@daily' }, { facilityId: 953, code: 'InvalidSchedule' }],
  ])('gets the reply %s at the responseAddress of its envelope', async (outcome, message, answer) => {
    const addresses = { responseAddress: addressOf(REPLIES), faultAddress: addressOf(FAULTS) };
    const request = massTransitEnvelope([urn(REQUEST)], message, { ...addresses, requestId: randomUUID() });
    await sendWrapped(scheduling, REQUEST, request);
    const { body, properties } = await take(REPLIES);
    expect(properties).toMatchObject({ content_type: 'application/vnd.masstransit+json' });
    expect(JSON.parse(body)).toMatchObject({
      requestId: request.requestId,
      conversationId: CONVERSATION,
      messageType: [urn(`ScheduleRecurringTaskInstanceGeneration${outcome}`)],
      message: answer,
    });
  });

  it.each([
    ['the faultAddress', { responseAddress: addressOf(REPLIES), faultAddress: addressOf(FAULTS) }, FAULTS],
    ['the responseAddress without one', { responseAddress: addressOf(REPLIES), faultAddress: null }, REPLIES],
  ])('gets a fault at %s if its request fails', async (_where, addresses, endpoint) => {
    await service.database.query('ALTER TABLE task.triggers ADD CONSTRAINT broken CHECK (false) NOT VALID');
    const message = { facilityId: 954, requestedBy: null };
    const request = massTransitEnvelope([urn(REQUEST)], message, { ...addresses, requestId: randomUUID() });
    await sendWrapped(scheduling, REQUEST, request);
    const fault = JSON.parse((await take(endpoint)).body);
    expect(fault).toMatchObject({
      requestId: request.requestId,
      messageType: [
        `urn:message:MassTransit:Fault[[${NAMESPACE}:${REQUEST}]]`,
        'urn:message:MassTransit:Fault',
      ],
      message: {
        faultedMessageId: request.messageId,
        exceptions: [{ exceptionType: 'QueryFailedError', message: expect.stringContaining('broken') }],
        faultMessageTypes: [urn(REQUEST)],
        message,
      },
    });
    await service.database.query('ALTER TABLE task.triggers DROP CONSTRAINT broken');
    await take(errorQueue(QUEUES.scheduleRequest));
    for (const queue of [REPLIES, FAULTS]) expect(await scheduling.get(queue, 1)).toEqual([]);
  });

  it('gets the first reply to a redelivered request, which does not undo a later one', async () => {
    const addresses = { responseAddress: addressOf(REPLIES), requestId: randomUUID() };
    const request = massTransitEnvelope([urn(REQUEST)], { facilityId: 956 }, addresses);
    const answers: unknown[] = [];
    for (const turn of ['first', 'again']) {
      await sendWrapped(scheduling, REQUEST, request);
      answers.push(JSON.parse((await take(REPLIES)).body).message);
      expect([turn, (await triggers(956)).length]).toEqual([turn, turn === 'first' ? 1 : 0]);
      await service.api
        .post('/commands/unscheduleRecurringTaskInstanceGeneration')
        .set(PARTNER)
        .send({ facilityId: 956 })
        .expect(200);
    }
    expect(answers[1]).toEqual(answers[0]);
  });

  it.each([
    ['AMQP’s reply-to', { reply_to: REPLIES, correlation_id: 'raw-1' }, null],
    [
      'the response address in MassTransit’s headers',
      { headers: { 'MT-Response-Address': addressOf(REPLIES), 'MT-Request-Id': CONVERSATION } },
      CONVERSATION,
    ],
  ])('sends raw JSON and gets the reply at %s', async (_where, properties, requestId) => {
    await send(scheduling, REQUEST, { facilityId: 955 }, properties);
    const { body, properties: answered } = await take(REPLIES);
    const answer = JSON.parse(body);
    expect(answer).toMatchObject({
      messageType: [urn('ScheduleRecurringTaskInstanceGenerationSucceeded')],
      message: { facilityId: 955 },
    });
    if (requestId === null) expect(answered).toMatchObject({ correlation_id: 'raw-1' });
    else expect(answer.requestId).toBe(requestId);
  });
});
