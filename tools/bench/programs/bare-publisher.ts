import { randomUUID } from 'node:crypto';
import type { SerializedEnvelope } from '@platform/messaging';
import { connect, type ConfirmChannel } from 'amqplib';

/** As many as the relay has on the way: four passes with 200 events each. */
const IN_FLIGHT = 800;
const QUEUE = 'bench.outbox-relay';

/** amqplib's confirm channel and nothing else, publishing what the relay publishes to where the relay publishes it. */
export class BarePublisher {
  readonly #channel: ConfirmChannel;
  readonly #envelope: SerializedEnvelope;

  private constructor(channel: ConfirmChannel, envelope: SerializedEnvelope) {
    this.#channel = channel;
    this.#envelope = envelope;
    channel.on('return', () => {
      throw new Error('a message was returned');
    });
  }

  /** Also declares the quorum queue that both sides publish to. */
  static async open(url: string, envelope: SerializedEnvelope): Promise<BarePublisher> {
    const connection = await connect(url, { noDelay: true });
    const channel = await connection.createConfirmChannel();
    await channel.assertExchange(envelope.exchange, 'fanout', { durable: true });
    await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
    await channel.bindQueue(QUEUE, envelope.exchange, '');
    return new BarePublisher(channel, envelope);
  }

  /** Publishes `count` messages, at most 800 of them unconfirmed; resolves with the count when all are confirmed. */
  async publish(count: number): Promise<number> {
    let started = 0;
    const one = async (): Promise<void> => {
      while (started < count) {
        started += 1;
        await this.#confirmed(started);
      }
    };
    await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, count) }, one));
    return count;
  }

  async purge(): Promise<void> {
    await this.#channel.purgeQueue(QUEUE);
  }

  #confirmed(publishId: number): Promise<void> {
    const { exchange, body, headers } = this.#envelope;
    const options = {
      contentType: 'application/vnd.masstransit+json',
      messageId: randomUUID(),
      persistent: true,
      mandatory: true,
      headers: { ...headers, publishId: String(publishId) },
    };
    return new Promise((resolve, reject) => {
      this.#channel.publish(exchange, '', Buffer.from(body), options, (error: unknown) =>
        error === null ? resolve() : reject(new Error('not confirmed', { cause: error })),
      );
    });
  }
}
