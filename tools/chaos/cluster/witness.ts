import amqp from 'amqplib';
import type { BusinessUnitChange } from '../load/journal.ts';
import type { Broker } from './servers.ts';
import { VHOSTS } from './servers.ts';

/** A message as it was published. */
export interface PublishedMessage {
  readonly name: string;
  readonly messageId: string;
  readonly message: Readonly<Record<string, unknown>>;
}

const QUEUE = 'chaos.witness';
const NAMESPACE = 'Platform.Contracts';
const EXCHANGES: Readonly<Record<(typeof VHOSTS)[number], readonly string[]>> = {
  main: ['IBusinessUnitChangeV1', 'ScheduleCreatedEvent', 'TaskInstanceCompletedEvent'],
  scheduling: ['ITaskInstanceGenerationRequested', 'IScheduleCreatedEvent', 'ScheduledMessageEvent'],
};
const IDLE_MS = 1_500;

/** Has a durable quorum queue on each bus take a copy of every event, in the order in which they were published. */
export async function bindWitness(broker: Broker): Promise<void> {
  for (const vhost of VHOSTS) {
    await withChannel(broker, vhost, async (channel) => {
      await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
      for (const name of EXCHANGES[vhost]) {
        const exchange = `${NAMESPACE}:${name}`;
        await channel.assertExchange(exchange, 'fanout', { durable: true });
        await channel.bindQueue(QUEUE, exchange, '');
      }
    });
  }
}

/** Takes everything out of the witness queues: first of the main bus, then of the scheduling bus. */
export async function readWitness(broker: Broker): Promise<PublishedMessage[]> {
  const found: PublishedMessage[] = [];
  for (const vhost of VHOSTS) {
    await withChannel(broker, vhost, async (channel) => {
      let lastAtMs = performance.now();
      await channel.consume(
        QUEUE,
        (delivery) => {
          lastAtMs = performance.now();
          if (delivery !== null) found.push(readMessage(delivery));
        },
        { noAck: true },
      );
      await new Promise<void>((resolve) => {
        const timer = setInterval(() => {
          if (performance.now() - lastAtMs < IDLE_MS) return;
          clearInterval(timer);
          resolve();
        }, 100);
      });
    });
  }
  return found;
}

/** Publishes a change again under its own id. */
export async function republishChange(broker: Broker, change: BusinessUnitChange): Promise<void> {
  const name = 'IBusinessUnitChangeV1';
  const envelope = {
    messageId: change.eventId,
    messageType: [`urn:message:${NAMESPACE}:${name}`],
    message: change,
  };
  await withChannel(broker, 'main', async (channel) => {
    channel.publish(`${NAMESPACE}:${name}`, '', Buffer.from(JSON.stringify(envelope)), {
      contentType: 'application/vnd.masstransit+json',
      messageId: change.eventId,
      persistent: true,
    });
    await channel.waitForConfirms();
  });
}

function readMessage({ content, fields }: amqp.ConsumeMessage): PublishedMessage {
  const envelope = JSON.parse(content.toString()) as Pick<PublishedMessage, 'messageId' | 'message'>;
  const name = fields.exchange.slice(NAMESPACE.length + 1);
  return { name, messageId: envelope.messageId, message: envelope.message };
}

async function withChannel(
  broker: Broker,
  vhost: (typeof VHOSTS)[number],
  work: (channel: amqp.ConfirmChannel) => Promise<void>,
): Promise<void> {
  const connection = await amqp.connect(broker.url(vhost), { timeout: 5_000 });
  // A connection that breaks fails what is being done on it, which is where it is noticed.
  connection.on('error', () => undefined);
  try {
    const channel = await connection.createConfirmChannel();
    channel.on('error', () => undefined);
    await work(channel);
  } finally {
    await connection.close().catch(() => undefined);
  }
}
