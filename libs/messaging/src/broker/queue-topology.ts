import type { Channel, Options } from 'amqplib';

/** Failed messages, and messages that the broker itself gives up, end here. */
export function errorQueue(queue: string): string {
  return `${queue}_error`;
}

/** Messages of a type without a handler at the queue end here, as in MassTransit. */
export function skippedQueue(queue: string): string {
  return `${queue}_skipped`;
}

/**
 * Messages wait here for `delayMs` and then return to `queue`. One queue per delay: in a queue of mixed
 * delays a long wait at the head would block the short ones behind it.
 */
export function retryQueue(queue: string, delayMs: number): string {
  return `${queue}_retry_${delayMs}`;
}

/**
 * Deliveries lost with their consumer (a crash each) before the broker moves a message to the error queue.
 * Explicit, because RabbitMQ 4 would take 20 and drop the message, and 3.10 would never stop.
 */
const DELIVERY_LIMIT = 100;

/** For queues that only operators read: RabbitMQ 4 counts each look at a message as a delivery. */
export const UNLIMITED_DELIVERIES = 1_000_000;

/**
 * Options of a quorum queue; valid on RabbitMQ 3.10 to 4.x, and compared by the broker, so never change them
 * lightly.
 */
export function quorumQueue(
  deliveryLimit: number,
  more: Readonly<Record<string, unknown>> = {},
): Options.AssertQueue {
  return {
    durable: true,
    arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': deliveryLimit, ...more },
  };
}

/** Nothing is lost between two quorum queues; `at-least-once` needs `reject-publish` as the overflow rule. */
function deadLettersTo(target: string): Readonly<Record<string, unknown>> {
  return {
    'x-dead-letter-exchange': '',
    'x-dead-letter-routing-key': target,
    'x-dead-letter-strategy': 'at-least-once',
    'x-overflow': 'reject-publish',
  };
}

/** What must exist around a consumed queue. */
export interface EndpointTopology {
  readonly queue: string;
  /** Fanout exchanges of the messages that the queue receives. */
  readonly exchanges: readonly string[];
  readonly delaysMs: readonly number[];
  readonly singleActiveConsumer?: boolean | undefined;
}

/**
 * Declares the exchanges and queues of an endpoint; repeating it changes nothing. It sends every command at
 * once and in order, so that the caller's next command on this channel finds them declared.
 */
export async function declareEndpoint(channel: Channel, topology: EndpointTopology): Promise<void> {
  const { queue, singleActiveConsumer } = topology;
  const one = singleActiveConsumer === true ? { 'x-single-active-consumer': true } : {};
  const fanout = (name: string): Promise<unknown> =>
    channel.assertExchange(name, 'fanout', { durable: true });
  await Promise.all([
    ...topology.exchanges.map(fanout),
    channel.assertQueue(queue, quorumQueue(DELIVERY_LIMIT, { ...deadLettersTo(errorQueue(queue)), ...one })),
    channel.assertQueue(errorQueue(queue), quorumQueue(UNLIMITED_DELIVERIES)),
    channel.assertQueue(skippedQueue(queue), quorumQueue(UNLIMITED_DELIVERIES)),
    ...topology.delaysMs.map((delayMs) => {
      const options = { 'x-message-ttl': delayMs, ...deadLettersTo(queue) };
      return channel.assertQueue(retryQueue(queue, delayMs), quorumQueue(UNLIMITED_DELIVERIES, options));
    }),
    // MassTransit sends to a queue through an exchange of the same name.
    fanout(queue),
    channel.bindQueue(queue, queue, ''),
    ...topology.exchanges.map((exchange) => channel.bindQueue(queue, exchange, '')),
  ]);
}
