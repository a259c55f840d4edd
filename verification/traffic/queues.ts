import amqp from 'amqplib';
import type { BusName } from '#platform/test-platform.ts';
import type { PlatformUnderLoad } from './platform.ts';

/** Name of the queue that holds a copy of every event. */
export const COPIES_QUEUE = 'chaos.copies';
const READING_LIMIT_MS = 60_000;
const BUSES = ['main', 'scheduling'] as const satisfies readonly BusName[];

/** A queue, its type and the number of its messages. */
export interface QueueContents {
  /** Prefixed with its bus, e.g. `main/task-service.task-instance-generation`. */
  readonly name: string;
  readonly type: string;
  readonly messages: number;
}

/**
 * Reads every queue except those that hold copies of events. The count of waiting messages is current. The
 * count of unacknowledged messages comes from the broker's statistics, which may be seconds old.
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

/**
 * Consumes all messages of all queues except the copies, and returns their ids. No program may be running.
 */
export async function messageIdsInQueues(platform: PlatformUnderLoad): Promise<Set<string>> {
  const ids = new Set<string>();
  let before: number;
  // A message that waits for a retry moves to a queue that may already have been read, so read until no new
  // id appears.
  do {
    before = ids.size;
    for (const bus of BUSES) {
      const queues = (await platform.bus(bus).queueTotals()).filter(({ name }) => name !== COPIES_QUEUE);
      for (const { name } of queues)
        for (const { content } of await drainQueue(platform, bus, name))
          ids.add((JSON.parse(content.toString()) as { messageId: string }).messageId);
    }
  } while (ids.size > before);
  return ids;
}

/**
 * Consumes all copies of one bus, in the order of publication. Nothing may be published during the call.
 * @throws {Error} if fewer messages arrive than the queue holds, or if more are published
 */
export function drainCopies(platform: PlatformUnderLoad, bus: BusName): Promise<amqp.ConsumeMessage[]> {
  return drainQueue(platform, bus, COPIES_QUEUE);
}

async function drainQueue(
  platform: PlatformUnderLoad,
  bus: BusName,
  queue: string,
): Promise<amqp.ConsumeMessage[]> {
  const drained: amqp.ConsumeMessage[] = [];
  await withChannel(platform, bus, async (channel) => {
    const { messageCount } = await channel.checkQueue(queue);
    if (messageCount === 0) return;
    await new Promise<void>((resolve, reject) => {
      const take = (delivery: amqp.ConsumeMessage | null): void => {
        if (delivery !== null) drained.push(delivery);
        if (drained.length === messageCount) resolve();
      };
      const giveUp = (): void =>
        reject(new Error(`only ${drained.length} of ${messageCount} messages in ${queue} arrived`));
      setTimeout(giveUp, READING_LIMIT_MS).unref();
      channel.once('close', giveUp);
      channel.consume(queue, take, { noAck: true }).catch(reject);
    });
    const { messageCount: left } = await channel.checkQueue(queue);
    if (left > 0) throw new Error(`${left} messages arrived in ${queue} of the ${bus} bus while it was read`);
  });
  return drained;
}

/** Runs `work` on a new confirm channel of a new connection, and closes both. */
export async function withChannel(
  { settings }: PlatformUnderLoad,
  bus: BusName,
  work: (channel: amqp.ConfirmChannel) => Promise<void>,
): Promise<void> {
  const url = bus === 'main' ? settings.mainBusUrl : settings.schedulingBusUrl;
  const connection = await amqp.connect(url, { timeout: 5_000 });
  // Ignored here: a broken connection also rejects the operations on it.
  connection.on('error', () => undefined);
  try {
    const channel = await connection.createConfirmChannel();
    channel.on('error', () => undefined);
    await work(channel);
  } finally {
    await connection.close().catch(() => undefined);
  }
}
