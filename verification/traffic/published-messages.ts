import type { BusName } from '#platform/test-platform.ts';
import type { BusinessUnitChange } from './journal.ts';
import type { PlatformUnderLoad } from './platform.ts';
import { COPIES_QUEUE, drainCopies, withChannel } from './queues.ts';

export interface PublishedMessage {
  readonly name: string;
  readonly messageId: string;
  readonly message: Readonly<Record<string, unknown>>;
}

const NAMESPACE = 'Platform.Contracts';
/** Events of changes of a schedule or its instances. */
export const CHANGE_EVENTS = [
  'ScheduleUpdatedEvent',
  'SchedulePausedEvent',
  'ScheduleResumedEvent',
  'ScheduleRemovedEvent',
  'TaskInstanceCancelledEvent',
];
const EVENTS: readonly [BusName, readonly string[]][] = [
  ['main', ['IBusinessUnitChangeV1', 'ScheduleCreatedEvent', 'TaskInstanceCompletedEvent', ...CHANGE_EVENTS]],
  ['scheduling', ['ITaskInstanceGenerationRequested', 'IScheduleCreatedEvent', 'ScheduledMessageEvent']],
];

/**
 * Binds a durable quorum queue on each bus that receives a copy of every event, in the order of publication.
 */
export async function copyPublishedMessages(platform: PlatformUnderLoad): Promise<void> {
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

/** Consumes all copies: first those of the main bus, then those of the scheduling bus. */
export async function readPublishedMessages(platform: PlatformUnderLoad): Promise<PublishedMessage[]> {
  const found: PublishedMessage[] = [];
  for (const [bus] of EVENTS) {
    for (const { content, fields } of await drainCopies(platform, bus)) {
      const { messageId, message } = JSON.parse(content.toString()) as PublishedMessage;
      found.push({ name: fields.exchange.slice(NAMESPACE.length + 1), messageId, message });
    }
  }
  return found;
}

/** Publishes a change under its own event id: again, or in place of its publisher. */
export async function publishChange(platform: PlatformUnderLoad, change: BusinessUnitChange): Promise<void> {
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
