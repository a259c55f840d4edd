import { type ChannelModel, connect, type ConsumeMessage } from 'amqplib';
import { eventually } from '@platform/testing';

/** A client of the broker that uses none of our code. */
export class ForeignClient {
  private readonly received: ConsumeMessage[] = [];

  private constructor(
    private readonly connection: ChannelModel,
    private readonly exchange: string,
  ) {}

  static async connect(url: string, exchange: string): Promise<ForeignClient> {
    const connection = await connect(url);
    connection.on('error', () => undefined);
    return new ForeignClient(connection, exchange);
  }

  async listen(queue: string, exchange?: string): Promise<void> {
    const channel = await this.connection.createChannel();
    await channel.assertQueue(queue, { exclusive: true });
    if (exchange !== undefined) {
      await channel.assertExchange(exchange, 'fanout', { durable: false, autoDelete: true });
      await channel.bindQueue(queue, exchange, '');
    }
    await channel.consume(queue, (message) => message && this.received.push(message), { noAck: true });
  }

  async publish(body: object, properties: object): Promise<void> {
    const channel = await this.connection.createConfirmChannel();
    channel.publish(this.exchange, '', Buffer.from(JSON.stringify(body)), properties);
    await channel.waitForConfirms();
  }

  /** Waits for the next response and returns it with its envelope parsed. */
  async response(): Promise<{ properties: ConsumeMessage['properties']; envelope: Record<string, unknown> }> {
    const message = await eventually(() => {
      const next = this.received.shift();
      if (next === undefined) throw new Error('no response yet');
      return next;
    });
    return {
      properties: message.properties,
      envelope: JSON.parse(message.content.toString()) as Record<string, unknown>,
    };
  }

  async close(): Promise<void> {
    await this.connection.close();
  }
}
