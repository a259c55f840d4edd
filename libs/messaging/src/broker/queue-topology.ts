import type { Channel, Options } from 'amqplib';

/** Name of the queue for failed messages, and for messages that the broker itself dead-letters. */
export function errorQueue(queue: string): string {
  return `${queue}_error`;
}

/** Name of the queue for messages of a type without a handler, as in MassTransit. */
export function skippedQueue(queue: string): string {
  return `${queue}_skipped`;
}

/**
 * Name of the queue in which messages wait for `delayMs` before they return to `queue`. Each delay has its
 * own queue, because in a shared queue a long delay at the head would block shorter ones behind it.
 */
export function retryQueue(queue: string, delayMs: number): string {
  return `${queue}_retry_${delayMs}`;
}

/**
 * Number of deliveries lost with their consumer (each one a crash) after which the broker moves a message to
 * the error queue. Set explicitly, because RabbitMQ 4 defaults to 20 and RabbitMQ 3.10 has no limit.
 */
const DELIVERY_LIMIT = 100;

/**
 * A delivery limit too high to be reached. RabbitMQ 4 counts each read by an operator as a delivery, and
 * reads must not remove a message.
 */
export const UNLIMITED_DELIVERIES = 1_000_000;

/**
 * Returns the options of a quorum queue, valid on RabbitMQ 3.10 to 4.x. The broker refuses to declare an
 * existing queue with other options, so a change here breaks existing queues.
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

/**
 * Returns the arguments for dead-lettering to another quorum queue without loss. `at-least-once` requires
 * `reject-publish` on overflow.
 */
function deadLetterArguments(target: string): Readonly<Record<string, unknown>> {
  return {
    'x-dead-letter-exchange': '',
    'x-dead-letter-routing-key': target,
    'x-dead-letter-strategy': 'at-least-once',
    'x-overflow': 'reject-publish',
  };
}

/** The exchanges and queues that a consumed queue needs. */
export interface EndpointTopology {
  readonly queue: string;
  /** Fanout exchanges of the messages that the queue receives. */
  readonly exchanges: readonly string[];
  readonly delaysMs: readonly number[];
  readonly singleActiveConsumer?: boolean | undefined;
}

/**
 * Declares the exchanges and queues of an endpoint; idempotent. Sends all commands at once and in order, so
 * that the caller's next command on this channel finds them declared.
 */
export async function declareEndpoint(channel: Channel, topology: EndpointTopology): Promise<void> {
  const { queue, singleActiveConsumer } = topology;
  const consumerLimit = singleActiveConsumer === true ? { 'x-single-active-consumer': true } : {};
  const fanout = (name: string): Promise<unknown> =>
    channel.assertExchange(name, 'fanout', { durable: true });
  await Promise.all([
    ...topology.exchanges.map(fanout),
    channel.assertQueue(
      queue,
      quorumQueue(DELIVERY_LIMIT, { ...deadLetterArguments(errorQueue(queue)), ...consumerLimit }),
    ),
    channel.assertQueue(errorQueue(queue), quorumQueue(UNLIMITED_DELIVERIES)),
    channel.assertQueue(skippedQueue(queue), quorumQueue(UNLIMITED_DELIVERIES)),
    ...topology.delaysMs.map((delayMs) => {
      const options = { 'x-message-ttl': delayMs, ...deadLetterArguments(queue) };
      return channel.assertQueue(retryQueue(queue, delayMs), quorumQueue(UNLIMITED_DELIVERIES, options));
    }),
    // MassTransit sends to a queue through an exchange of the same name.
    fanout(queue),
    channel.bindQueue(queue, queue, ''),
    ...topology.exchanges.map((exchange) => channel.bindQueue(queue, exchange, '')),
  ]);
}
