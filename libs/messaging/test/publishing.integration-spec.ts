import { Socket } from 'node:net';
import {
  ScheduleCreatedEvent,
  ScheduledMessageEvent,
  type TaskInstanceCompletedEvent as Completed,
  TaskInstanceCompletedEvent,
} from '@platform/contracts';
import { createTestBroker, type TestBroker } from '@platform/testing';
import { connect } from 'amqplib';
import { BusUnavailableError, connectBus, MessageReturnedError, type PlainBus } from '../src/index';
import { completedEvent } from './messages';
import { NAMESPACE, SILENT } from './messaging-app';

const SCHEDULED: ScheduledMessageEvent = {
  subsystemName: 's',
  messageName: 'm',
  description: 'd',
  schedule: '0 2 * * *',
};

describe('publishing', () => {
  let broker: TestBroker;
  let bus: PlainBus;

  beforeEach(async () => {
    broker = await createTestBroker();
    bus = await connectBus({ url: broker.url, name: 'publisher', logger: SILENT });
  });

  afterEach(async () => {
    await bus.close();
    await broker.drop();
  });

  const exchangeOf = ({ name }: { name: string }): string => `${NAMESPACE}:${name}`;

  const onChannel = async (
    work: (
      channel: Awaited<ReturnType<Awaited<ReturnType<typeof connect>>['createChannel']>>,
    ) => Promise<unknown>,
  ): Promise<void> => {
    const connection = await connect(broker.url);
    await work(await connection.createChannel());
    await connection.close();
  };

  it('publishes an event without a subscriber, and fails if the contract needs a receiver', async () => {
    await bus.publish(TaskInstanceCompletedEvent, completedEvent());
    const { taskInstanceId: scheduleId, facilityId, dueAtUtc, completedBy } = completedEvent();
    const created: ScheduleCreatedEvent = {
      scheduleId,
      facilityId,
      createdAtUtc: dueAtUtc,
      createdBy: completedBy,
      name: 'n',
      schedule: '0 2 * * *',
      timeZone: 'UTC',
    };
    await expect(bus.publish(ScheduleCreatedEvent, created)).rejects.toThrow(MessageReturnedError);
  });

  it('writes the messages of one event-loop turn together', async () => {
    await bus.publish(TaskInstanceCompletedEvent, completedEvent());
    const single = jest.spyOn(Socket.prototype, '_write');
    const gathered = jest.spyOn(Socket.prototype, '_writev' as '_write');
    try {
      const events = Array.from({ length: 100 }, () => completedEvent());
      await Promise.all(events.map((event) => bus.publish(TaskInstanceCompletedEvent, event)));
      // 100 messages of 1.2 KB, at most 16 KiB per write.
      expect(single.mock.calls.length + gathered.mock.calls.length).toBeLessThan(20);
    } finally {
      jest.restoreAllMocks();
    }
  });

  it('fails only the messages whose exchange is of another type, not others in flight', async () => {
    await onChannel((channel) =>
      channel.assertExchange(exchangeOf(ScheduledMessageEvent), 'topic', { durable: true }),
    );
    await broker.management.bindQueue(exchangeOf(TaskInstanceCompletedEvent), 'completed');
    const events = Array.from({ length: 200 }, (_, facilityId) => completedEvent({ facilityId }));
    const innocent = events.map((event) => bus.publish(TaskInstanceCompletedEvent, event));
    const guilty = Array.from({ length: 3 }, () => bus.publish(ScheduledMessageEvent, SCHEDULED));
    const outcomes = await Promise.allSettled([...innocent, ...guilty]);
    expect(outcomes.slice(0, 200).filter(({ status }) => status === 'rejected')).toEqual([]);
    for (const { reason } of outcomes.slice(200) as PromiseRejectedResult[]) {
      expect(reason).toBeInstanceOf(BusUnavailableError);
      expect((reason as Error).cause).toMatchObject({ code: 406 });
    }
    const arrived = await broker.management.get('completed', 1_000);
    const facilities = arrived.map(
      ({ body }) => (JSON.parse(body) as { message: Completed }).message.facilityId,
    );
    expect(new Set(facilities).size).toBe(200);
  });

  it('redeclares a deleted exchange without failing any message', async () => {
    await bus.publish(ScheduledMessageEvent, SCHEDULED);
    await bus.publish(TaskInstanceCompletedEvent, completedEvent());
    await onChannel((channel) => channel.deleteExchange(exchangeOf(ScheduledMessageEvent)));
    await Promise.all([
      ...Array.from({ length: 50 }, () => bus.publish(TaskInstanceCompletedEvent, completedEvent())),
      bus.publish(ScheduledMessageEvent, SCHEDULED),
    ]);
    expect(await broker.management.exchange(exchangeOf(ScheduledMessageEvent))).toMatchObject({
      type: 'fanout',
    });
  });
});
