import { randomUUID } from 'node:crypto';
import { connect } from 'amqplib';
import { BusinessUnitChangeV1, TaskInstanceCompletedEvent } from '@platform/contracts';
import { createTestBroker, eventually, type ReceivedMessage, type TestBroker } from '@platform/testing';
import { connectBus, createEnvelope, type PlainBus, retryQueue } from '../src/index';
import { declareEndpoint } from '../src/broker/queue-topology';
import { BrokerProbe } from './broker-probe';
import { businessUnitChange, completedEvent } from './messages';
import { NAMESPACE, SILENT } from './messaging-app';

const ENVELOPE = { content_type: 'application/vnd.masstransit+json', headers: { tenant: 'acme' } };

describe('a message that cannot be processed', () => {
  let broker: TestBroker;
  let probe: BrokerProbe;
  let sender: PlainBus;
  let receiver: PlainBus;

  beforeAll(async () => {
    broker = await createTestBroker();
    const options = { url: broker.url, logger: SILENT };
    probe = await BrokerProbe.connect(broker.url);
    sender = await connectBus({ ...options, name: 'sender' });
    receiver = await connectBus({ ...options, name: 'receiver' });
  });

  afterAll(async () => {
    await Promise.all([sender.close(), receiver.close(), probe.close()]);
    await broker.drop();
  });

  const take = (queue: string): Promise<ReceivedMessage> =>
    eventually(async () => {
      const [message] = await broker.management.get(queue, 1);
      if (message === undefined) throw new Error(`${queue} is empty`);
      return message;
    });

  const envelope = (): string =>
    createEnvelope(TaskInstanceCompletedEvent, completedEvent(), {
      namespace: NAMESPACE,
      messageId: randomUUID(),
      sentAt: new Date('2026-01-05T10:00:00Z'),
    }).body;

  it('is retried after each wait of the policy, in order, and then moved to the error queue', async () => {
    const startedAtMs = performance.now();
    const attemptsAtMs: number[] = [];
    const retryDelaysMs = [200, 50, 400];
    await receiver.consume(TaskInstanceCompletedEvent, { queue: 'failing.always', retryDelaysMs }, () => {
      attemptsAtMs.push(performance.now() - startedAtMs);
      return Promise.reject(new RangeError('facility 501 is unknown'));
    });
    const body = envelope();
    await broker.management.publish(`${NAMESPACE}:TaskInstanceCompletedEvent`, {
      body,
      properties: ENVELOPE,
    });

    const parked = await take('failing.always_error');
    expect(parked.body).toBe(body);
    expect(parked.properties).toMatchObject({
      content_type: 'application/vnd.masstransit+json',
      delivery_mode: 2,
    });
    expect(parked.headers).toMatchObject({
      tenant: 'acme',
      'x-error-reason': 'failed',
      'x-retry-attempts': 3,
      'x-original-exchange': `${NAMESPACE}:TaskInstanceCompletedEvent`,
      'MT-Reason': 'fault',
      'MT-Fault-ExceptionType': 'RangeError',
      'MT-Fault-Message': 'facility 501 is unknown',
    });
    expect(JSON.stringify(parked.headers)).not.toContain('.ts:');
    const waitsMs = attemptsAtMs.slice(1).map((atMs, index) => atMs - (attemptsAtMs[index] ?? 0));
    expect(waitsMs).toHaveLength(3);
    waitsMs.forEach((waitMs, index) => expect(waitMs).toBeGreaterThanOrEqual(retryDelaysMs[index] ?? 0));
  });

  it('waits the spec’s 5 s, 30 s, 1 min, 3 min and 5 min in a durable quorum queue each', async () => {
    const retryDelaysMs = [5_000, 30_000, 60_000, 180_000, 300_000];
    await receiver.consume(BusinessUnitChangeV1, { queue: 'failing.slow', retryDelaysMs }, () =>
      Promise.resolve(),
    );
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    for (const delayMs of retryDelaysMs) {
      // The broker refuses a declaration that differs from the existing queue.
      const declared = channel.assertQueue(retryQueue('failing.slow', delayMs), {
        durable: true,
        arguments: {
          'x-queue-type': 'quorum',
          'x-message-ttl': delayMs,
          'x-delivery-limit': 1_000_000,
          'x-dead-letter-exchange': '',
          'x-dead-letter-routing-key': 'failing.slow',
          'x-dead-letter-strategy': 'at-least-once',
          'x-overflow': 'reject-publish',
        },
      });
      await expect(declared).resolves.toMatchObject({ messageCount: 0 });
    }
    await connection.close();
  });

  it.each([
    ['bytes that are not JSON', '{"facilityId": 5', ENVELOPE, 'unreadable', 'UnreadableMessageError'],
    ['an envelope without a message', '{"messageType":[]}', ENVELOPE, 'unreadable', 'UnreadableMessageError'],
    [
      'a message that breaks its contract',
      '{"businessUnitId":"77"}',
      { content_type: 'application/json' },
      'invalid',
      'InvalidMessageError',
    ],
  ])('goes to the error queue at once: %s', async (_what, body, properties, reason, type) => {
    let handled = 0;
    const queue = `failing.${reason}.${randomUUID()}`;
    await receiver.consume(BusinessUnitChangeV1, { queue, retryDelaysMs: [60_000] }, () => {
      handled += 1;
      return Promise.resolve();
    });
    await broker.management.publish('', { body, properties, routingKey: queue });
    const parked = await take(`${queue}_error`);
    expect(parked.body).toBe(body);
    expect(parked.headers).toMatchObject({
      'x-error-reason': reason,
      'MT-Fault-ExceptionType': type,
      'x-retry-attempts': 0,
    });
    expect(handled).toBe(0);
  });

  it('goes to the skipped queue when no handler there has its type', async () => {
    await receiver.consume(BusinessUnitChangeV1, { queue: 'failing.skipped' }, () => Promise.resolve());
    const body = envelope();
    await broker.management.publish('', { body, properties: ENVELOPE, routingKey: 'failing.skipped' });
    const skipped = await take('failing.skipped_skipped');
    expect(skipped.body).toBe(body);
    expect(skipped.headers).toMatchObject({ 'x-error-reason': 'unknown-type', 'MT-Reason': 'dead-letter' });
  });

  it('is dead-lettered by the broker to the error queue after it was lost with its consumer 100 times', async () => {
    const queue = 'failing.crashing';
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    await declareEndpoint(channel, { queue, exchanges: [], delaysMs: [] });
    let deliveries = 0;
    await channel.consume(queue, (message) => {
      deliveries += 1;
      // The broker treats a rejection like a lost consumer, and a rejection is quicker.
      if (message !== null) channel.reject(message, true);
    });
    channel.sendToQueue(queue, Buffer.from('{}'));
    const parked = await take(`${queue}_error`);
    expect(parked.body).toBe('{}');
    expect(deliveries).toBe(101);
    await connection.close();
  });

  it('does not stop the messages behind it', async () => {
    const queue = 'failing.mixed';
    const received: number[] = [];
    await receiver.consume(BusinessUnitChangeV1, { queue, retryDelaysMs: [60_000] }, ({ businessUnitId }) => {
      if (businessUnitId === 1) return Promise.reject(new Error('poison'));
      received.push(businessUnitId);
      return Promise.resolve();
    });
    await sender.publish(BusinessUnitChangeV1, businessUnitChange({ businessUnitId: 1 }));
    await sender.publish(BusinessUnitChangeV1, businessUnitChange({ businessUnitId: 2 }));
    await eventually(() => expect(received).toEqual([2]));
    await eventually(async () =>
      expect(await probe.queue(retryQueue(queue, 60_000))).toMatchObject({ ready: 1 }),
    );
  });
});
