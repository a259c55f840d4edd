import amqp from 'amqplib';
import type { BusName } from '#platform/test-platform.ts';
import type { PlatformUnderLoad } from './platform.ts';

/** Holds a copy of every event. */
export const COPIES_QUEUE = 'chaos.copies';
const READING_LIMIT_MS = 60_000;
const BUSES = ['main', 'scheduling'] as const satisfies readonly BusName[];

/** A queue, its type and how many messages are in it. */
export interface QueueContents {
  /** With its bus, e.g. `main/task-service.task-instance-generation`. */
  readonly name: string;
  readonly type: string;
  readonly messages: number;
}

/**
 * Every queue except those that hold copies of events. Waiting messages are counted as they are now. Messages
 * in delivery are counted by the broker's statistics, which may be seconds old.
 */
export async function readQueues(platform: PlatformUnderLoad): Promise<QueueContents[]> {
  const found: QueueContents[] = [];
  for (const bus of BUSES) {
    const queues = (await platform.bus(bus).queueTotals()).filter(({ name }) => name !== COPIES_QUEUE);
    await withChannel(platform, bus, async (channel) => {
      for (const { name, type, messages = 0 } of queues) {
        const { messageCount: waiting } = await channel.checkQueue(name);
        found.push({ name: `${bus}/${name}`, type, messages: Math.max(messages, waiting) });
      }
    });
  }
  return found;
}

/** Takes every message out of all queues but those of the copies, and gives their ids. No program may run. */
export async function messageIdsInQueues(platform: PlatformUnderLoad): Promise<Set<string>> {
  const ids = new Set<string>();
  let before: number;
  // A message that waits to be tried again moves to a queue that may have been read before.
  do {
    before = ids.size;
    for (const bus of BUSES) {
      const queues = (await platform.bus(bus).queueTotals()).filter(({ name }) => name !== COPIES_QUEUE);
      for (const { name } of queues)
        for (const { content } of await takeMessages(platform, bus, name))
          ids.add((JSON.parse(content.toString()) as { messageId: string }).messageId);
    }
  } while (ids.size > before);
  return ids;
}

/** Takes every copy of one bus, in the order in which they were published. Nothing may be published
 * meanwhile.  @throws {Error} when not all of them come */
export function takeCopies(platform: PlatformUnderLoad, bus: BusName): Promise<amqp.ConsumeMessage[]> {
  return takeMessages(platform, bus, COPIES_QUEUE);
}

async function takeMessages(
  platform: PlatformUnderLoad,
  bus: BusName,
  queue: string,
): Promise<amqp.ConsumeMessage[]> {
  const taken: amqp.ConsumeMessage[] = [];
  await withChannel(platform, bus, async (channel) => {
    const { messageCount } = await channel.checkQueue(queue);
    if (messageCount === 0) return;
    await new Promise<void>((resolve, reject) => {
      const take = (delivery: amqp.ConsumeMessage | null): void => {
        if (delivery !== null) taken.push(delivery);
        if (taken.length === messageCount) resolve();
      };
      const giveUp = (): void =>
        reject(new Error(`of ${messageCount} messages in ${queue} ${taken.length} came`));
      setTimeout(giveUp, READING_LIMIT_MS).unref();
      channel.once('close', giveUp);
      channel.consume(queue, take, { noAck: true }).catch(reject);
    });
    const { messageCount: left } = await channel.checkQueue(queue);
    if (left > 0) throw new Error(`${left} messages came to ${queue} of the bus ${bus} while it was read`);
  });
  return taken;
}

/** Does something on a channel of its own, with confirms. */
export async function withChannel(
  { settings }: PlatformUnderLoad,
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
