import type { Channel, Options } from 'amqplib';

/** Dead letters of the broker and failed messages end here. */
export function errorQueue(queue: string): string {
  return `${queue}_error`;
}

/** Messages of a type that nobody at the queue handles end here, as MassTransit does it. */
export function skippedQueue(queue: string): string {
  return `${queue}_skipped`;
}

/** Messages wait here, `delayMs` each, and then return to `queue`. One queue per delay: with mixed times a long wait at the head
 *  would block the short ones behind it. */
export function retryQueue(queue: string, delayMs: number): string {
  return `${queue}_retry_${delayMs}`;
}

/** Deliveries lost with their consumer (a crash each) before the broker gives a message up to the error queue. Explicit, because
 *  RabbitMQ 4 would take 20 and drop the message, and 3.10 would never stop. */
const DELIVERY_LIMIT = 100;

/** For queues that are only read by hand: RabbitMQ 4 counts each look at a message as a delivery. */
const UNLIMITED_DELIVERIES = 1_000_000;

/** Nothing is lost between two quorum queues; needs `reject-publish` as the overflow rule. */
const SAFE_DEAD_LETTERING = { 'x-dead-letter-strategy': 'at-least-once', 'x-overflow': 'reject-publish' };

/** Arguments of a queue that is consumed; valid on RabbitMQ 3.10 to 4.x, and compared by the broker, so never change them lightly. */
export function workQueueOptions(queue: string): Options.AssertQueue {
  return {
    durable: true,
    arguments: {
      'x-queue-type': 'quorum',
      'x-delivery-limit': DELIVERY_LIMIT,
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': errorQueue(queue),
      ...SAFE_DEAD_LETTERING,
    },
  };
}

/** Arguments of the queue where a message waits `delayMs` before it returns to `queue`. */
function retryQueueOptions(queue: string, delayMs: number): Options.AssertQueue {
  return {
    durable: true,
    arguments: {
      'x-queue-type': 'quorum',
      'x-message-ttl': delayMs,
      'x-delivery-limit': UNLIMITED_DELIVERIES,
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': queue,
      ...SAFE_DEAD_LETTERING,
    },
  };
}

/** Arguments of error and skipped queues. */
function parkingQueueOptions(): Options.AssertQueue {
  return { durable: true, arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': UNLIMITED_DELIVERIES } };
}

/** What must exist around a consumed queue. */
export interface EndpointTopology {
  readonly queue: string;
  /** Fanout exchanges of the messages that the queue wants. */
  readonly exchanges: readonly string[];
  readonly delaysMs: readonly number[];
}

/** Declares the exchanges and queues of an endpoint; repeating it changes nothing. Every command is sent at once and in order, so
 *  that whatever the caller sends next on this channel finds them declared. */
export async function declareEndpoint(channel: Channel, topology: EndpointTopology): Promise<void> {
  const { queue } = topology;
  const fanout = (name: string): Promise<unknown> =>
    channel.assertExchange(name, 'fanout', { durable: true });
  await Promise.all([
    ...topology.exchanges.map(fanout),
    channel.assertQueue(queue, workQueueOptions(queue)),
    channel.assertQueue(errorQueue(queue), parkingQueueOptions()),
    channel.assertQueue(skippedQueue(queue), parkingQueueOptions()),
    ...topology.delaysMs.map((delayMs) =>
      channel.assertQueue(retryQueue(queue, delayMs), retryQueueOptions(queue, delayMs)),
    ),
    // MassTransit sends to a queue through an exchange of the same name.
    fanout(queue),
    channel.bindQueue(queue, queue, ''),
    ...topology.exchanges.map((exchange) => channel.bindQueue(queue, exchange, '')),
  ]);
}
