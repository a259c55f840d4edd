import { randomUUID } from 'node:crypto';
import type { INestApplicationContext } from '@nestjs/common';
import { BusinessUnitChangeV1 } from '@platform/contracts';
import { createTestBroker, eventually, type TestBroker, type TestDatabase } from '@platform/testing';
import { type ChannelModel, connect } from 'amqplib';
import { Consume, type ConsumeContext } from '../src/index';
import { businessUnitChange } from './messages';
import { createInboxDatabase, startMessagingApp, stopGracefully } from './messaging-app';

const QUEUE = 'timeouts.events';
const startsMs: number[] = [];

class SlowHandler {
  @Consume(BusinessUnitChangeV1, {
    queue: QUEUE,
    immediateRetryDelaysMs: [10, 10],
    retryDelaysMs: [100],
    outlastsOutages: true,
  })
  async change(_change: BusinessUnitChangeV1, { transaction }: ConsumeContext): Promise<void> {
    startsMs.push(performance.now());
    await transaction.query('SET LOCAL statement_timeout = 50');
    await transaction.query('SELECT pg_sleep(5)');
  }
}

describe('a handler whose statement takes too long', () => {
  let database: TestDatabase;
  let broker: TestBroker;
  let app: INestApplicationContext;
  let connection: ChannelModel;

  beforeAll(async () => {
    [database, broker] = await Promise.all([createInboxDatabase(), createTestBroker()]);
    app = await startMessagingApp({
      databaseUrl: database.url,
      mainUrl: broker.url,
      handlers: [SlowHandler],
    });
    connection = await connect(broker.url);
  });
  afterAll(async () => {
    await connection.close();
    await stopGracefully(app);
    await Promise.all([broker.drop(), database.drop()]);
  });

  it('is retried as often as the policy says, but waits in the broker instead of in the process', async () => {
    // Checked over the management API, because a passive declaration over AMQP would close the channel while
    // the queue is missing.
    await eventually(async () => expect(await broker.management.queues()).toContain(QUEUE));
    const channel = await connection.createChannel();
    channel.sendToQueue(QUEUE, Buffer.from(JSON.stringify(businessUnitChange())), {
      contentType: 'application/json',
      messageId: randomUUID(),
    });
    const [parked] = await eventually(
      async () => {
        const messages = await broker.management.get(`${QUEUE}_error`, 1);
        expect(messages).toHaveLength(1);
        return messages;
      },
      { timeoutMs: 15_000 },
    );
    expect(parked?.headers).toMatchObject({ 'x-error-reason': 'failed', 'x-retry-attempts': 1 });
    const waitsMs = startsMs.slice(1).map((startMs, index) => startMs - (startsMs[index] ?? 0));
    expect(waitsMs).toHaveLength(3);
    for (const waitMs of waitsMs.slice(0, 2)) expect(waitMs).toBeGreaterThanOrEqual(1_000);
    expect(waitsMs[2]).toBeLessThan(1_000);
  }, 30_000);
});
