import { randomUUID } from 'node:crypto';
import {
  ScheduleCreatedEvent,
  ScheduleRecurringTaskInstanceGenerationRequest as Request,
  ScheduledMessageEvent,
} from '@platform/contracts';
import { exchangeName } from '@platform/messaging';
import { eventually } from '@platform/testing';
import type { BrokerManagement } from '@platform/testing';
import { NAMESPACE, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const GUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
const REPLIES = 'NEIGHBOUR_bus_x1';
const FAULTS = 'NEIGHBOUR_faults';

/**
 * The members of MassTransit 8's `JsonMessageEnvelope` and `BusHostInfo`. Source: MassTransit's reference,
 * masstransit-serialization.
 */
const MEMBERS = [
  'messageId',
  'requestId',
  'correlationId',
  'conversationId',
  'initiatorId',
  'sourceAddress',
  'destinationAddress',
  'responseAddress',
  'faultAddress',
  'messageType',
  'message',
  'expirationTime',
  'sentTime',
  'headers',
  'host',
];
const HOST_MEMBERS = [
  'machineName',
  'processName',
  'processId',
  'assembly',
  'assemblyVersion',
  'frameworkVersion',
  'massTransitVersion',
  'operatingSystemVersion',
];

describe('every envelope on the wire', () => {
  let service: TaskFixture;

  const take = (bus: BrokerManagement, queue: string) =>
    eventually(async () => {
      const [message] = await bus.get(queue, 1);
      if (message === undefined) throw new Error(`${queue} is empty`);
      return JSON.parse(message.body) as Record<string, unknown>;
    });

  /** Expects all members, GUIDs as identifiers, and an exchange of this broker as the source. */
  const expectComplete = async (bus: BrokerManagement, envelope: Record<string, unknown>): Promise<void> => {
    expect(Object.keys(envelope).toSorted()).toEqual(MEMBERS.toSorted());
    const { host, sourceAddress, messageId, conversationId, sentTime } = envelope;
    expect(Object.keys(host as object).toSorted()).toEqual(HOST_MEMBERS.toSorted());
    for (const value of Object.values(host as object)) expect(value).toBeTruthy();
    for (const id of [messageId, conversationId]) expect(id).toMatch(GUID);
    expect(new Date(String(sentTime)).toISOString()).toBe(sentTime);
    const source = new URL(String(sourceAddress)).pathname.split('/').at(-1) ?? '';
    expect(await bus.exchange(decodeURIComponent(source))).toMatchObject({ type: 'fanout', durable: true });
  };

  beforeAll(async () => {
    service = await startTaskService();
    const { scheduling } = service.brokers;
    for (const endpoint of [REPLIES, FAULTS]) await scheduling.management.bindQueue(endpoint, endpoint);
  });
  afterAll(() => service.close());

  it('is complete for an event of the outbox', async () => {
    const { main } = service.brokers;
    const queue = await service.watch(ScheduleCreatedEvent);
    const body = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };
    await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    const event = await take(main.management, queue);
    await expectComplete(main.management, event);
    expect(event['destinationAddress']).toMatch(/\/Platform\.Contracts:ScheduleCreatedEvent$/);
    expect(event).toMatchObject({ requestId: null, responseAddress: null, expirationTime: null });
  });

  it('is complete for a request, its response, and an event that it causes', async () => {
    const { management } = service.brokers.scheduling;
    const events = await service.watch(ScheduledMessageEvent);
    const requests = await service.watch(Request);
    await service.api
      .post('/commands/scheduleRecurringTaskInstanceGeneration')
      .set(PARTNER)
      .send({ facilityId: 910 })
      .expect(200);
    const request = await take(management, requests);
    await expectComplete(management, request);
    expect(request).toMatchObject({
      requestId: expect.stringMatching(GUID),
      responseAddress: expect.stringContaining('.replies.'),
      expirationTime: expect.stringMatching(/Z$/),
    });
    const event = await take(management, events);
    await expectComplete(management, event);
    expect(event['conversationId']).toBe(request['conversationId']);
  });

  const ask = async (message: object): Promise<{ messageId: string; requestId: string }> => {
    const ids = { messageId: randomUUID(), requestId: randomUUID(), conversationId: randomUUID() };
    const envelope = {
      ...ids,
      responseAddress: `rabbitmq://localhost/vhost/${REPLIES}?temporary=true`,
      faultAddress: `rabbitmq://localhost/vhost/${FAULTS}?temporary=true`,
      messageType: [`urn:message:${NAMESPACE}:${Request.name}`],
      message,
    };
    await service.brokers.scheduling.management.publish(exchangeName(NAMESPACE, Request.name), {
      body: JSON.stringify(envelope),
      properties: { content_type: 'application/vnd.masstransit+json' },
    });
    return ids;
  };

  it.each([
    ['a response', { facilityId: 911 }, REPLIES],
    ['a refusal', { facilityId: 911, schedule: '@daily' }, REPLIES],
    ['a fault over a number in quotes', { facilityId: '910' }, FAULTS],
  ])('is complete and has its destination address for %s', async (_what, message, endpoint) => {
    const { management } = service.brokers.scheduling;
    const ids = await ask(message);
    const response = await take(management, endpoint);
    await expectComplete(management, response);
    expect(response).toMatchObject({
      requestId: ids.requestId,
      destinationAddress: `rabbitmq://localhost/vhost/${endpoint}?temporary=true`,
    });
    if (endpoint === FAULTS)
      expect(response['message']).toMatchObject({ faultedMessageId: ids.messageId, message });
  });
});
