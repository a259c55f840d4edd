import { setTimeout as delay } from 'node:timers/promises';
import amqp from 'amqplib';
import type { BusName, TestPlatform } from '#platform/test-platform.ts';
import type { BusinessUnitChange } from './load/journal.ts';

export interface PublishedMessage {
  readonly name: string;
  readonly messageId: string;
  readonly message: Readonly<Record<string, unknown>>;
}

/** Holds a copy of every event. */
export const COPIES_QUEUE = 'chaos.copies';
const NAMESPACE = 'Platform.Contracts';
/** What changes of a schedule and of its instances are told by. */
export const CHANGE_EVENTS = [
  ...['ScheduleUpdatedEvent', 'SchedulePausedEvent', 'ScheduleResumedEvent', 'ScheduleRemovedEvent'],
  'TaskInstanceCancelledEvent',
];
const EVENTS: readonly [BusName, readonly string[]][] = [
  ['main', ['IBusinessUnitChangeV1', 'ScheduleCreatedEvent', 'TaskInstanceCompletedEvent', ...CHANGE_EVENTS]],
  ['scheduling', ['ITaskInstanceGenerationRequested', 'IScheduleCreatedEvent', 'ScheduledMessageEvent']],
];
const IDLE_MS = 1_500;

/** Has a durable quorum queue on each bus take a copy of every event, in the order in which they were published. */
export async function copyPublishedMessages(platform: TestPlatform): Promise<void> {
  for (const [bus, names] of EVENTS) {
    await withChannel(platform, bus, async (channel) => {
      await channel.assertQueue(COPIES_QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
      for (const name of names) {
        const exchange = `${NAMESPACE}:${name}`;
        await channel.assertExchange(exchange, 'fanout', { durable: true });
        await channel.bindQueue(COPIES_QUEUE, exchange, '');
      }
    });
  }
}

/** Takes every copy: first of the main bus, then of the scheduling bus. */
export async function readPublishedMessages(platform: TestPlatform): Promise<PublishedMessage[]> {
  const found: PublishedMessage[] = [];
  for (const [bus] of EVENTS) {
    await withChannel(platform, bus, async (channel) => {
      let lastAtMs = performance.now();
      const take = (delivery: amqp.ConsumeMessage | null): void => {
        lastAtMs = performance.now();
        if (delivery === null) return;
        const { messageId, message } = JSON.parse(delivery.content.toString()) as PublishedMessage;
        found.push({ name: delivery.fields.exchange.slice(NAMESPACE.length + 1), messageId, message });
      };
      await channel.consume(COPIES_QUEUE, take, { noAck: true });
      while (performance.now() - lastAtMs < IDLE_MS) await delay(100);
    });
  }
  return found;
}

/** Publishes a change again under its own id. */
export async function republishChange(platform: TestPlatform, change: BusinessUnitChange): Promise<void> {
  const name = 'IBusinessUnitChangeV1';
  const envelope = {
    messageId: change.eventId,
    messageType: [`urn:message:${NAMESPACE}:${name}`],
    message: change,
  };
  await withChannel(platform, 'main', async (channel) => {
    channel.publish(`${NAMESPACE}:${name}`, '', Buffer.from(JSON.stringify(envelope)), {
      contentType: 'application/vnd.masstransit+json',
      messageId: change.eventId,
      persistent: true,
    });
    await channel.waitForConfirms();
  });
}

async function withChannel(
  { settings }: TestPlatform,
  bus: BusName,
  work: (channel: amqp.ConfirmChannel) => Promise<void>,
): Promise<void> {
  const url = bus === 'main' ? settings.mainBusUrl : settings.schedulingBusUrl;
  const connection = await amqp.connect(url, { timeout: 5_000 });
  // A broken connection also fails what is being done on it.
  connection.on('error', () => undefined);
  try {
    const channel = await connection.createConfirmChannel();
    channel.on('error', () => undefined);
    await work(channel);
  } finally {
    await connection.close().catch(() => undefined);
  }
}
