import { randomUUID } from 'node:crypto';
import type { SerializedEnvelope } from '@platform/messaging';
import { connect } from 'amqplib';

/** Maximum number of unconfirmed messages, the same as the relay's: two passes of 400 events. */
const IN_FLIGHT = 800;
const QUEUE = 'bench.outbox-relay';

/**
 * A bare confirm channel of amqplib that publishes the relay's envelope to the relay's exchange. Declares the
 * quorum queue that receives the messages of both sides.
 */
export async function openBarePublisher(url: string, { exchange, body, headers }: SerializedEnvelope) {
  const connection = await connect(url, { noDelay: true });
  const channel = await connection.createConfirmChannel();
  await channel.assertExchange(exchange, 'fanout', { durable: true });
  await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
  await channel.bindQueue(QUEUE, exchange, '');
  channel.on('return', () => {
    throw new Error('a message was returned');
  });
  const publishOne = (publishId: number): Promise<void> => {
    const options = {
      contentType: 'application/vnd.masstransit+json',
      messageId: randomUUID(),
      persistent: true,
      mandatory: true,
      headers: { ...headers, publishId: String(publishId) },
    };
    return new Promise((resolve, reject) => {
      channel.publish(exchange, '', Buffer.from(body), options, (error: unknown) =>
        error === null ? resolve() : reject(new Error('not confirmed', { cause: error })),
      );
    });
  };
  return {
    /** Publishes `count` messages, at most 800 of them unconfirmed; resolves when all are confirmed. */
    publish: async (count: number): Promise<void> => {
      let started = 0;
      const publishMany = async (): Promise<void> => {
        while (started < count) {
          started += 1;
          await publishOne(started);
        }
      };
      await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, count) }, publishMany));
    },
    purge: () => channel.purgeQueue(QUEUE),
  };
}
