import { type ChannelModel, connect } from 'amqplib';

/** Exact figures from the broker itself; the management API's lag by seconds. */
export class BrokerProbe {
  private isOpen = true;

  private constructor(private readonly connection: ChannelModel) {
    // Suites close connections on purpose.
    connection.on('error', () => undefined);
    connection.on('close', () => {
      this.isOpen = false;
    });
  }

  static async connect(url: string): Promise<BrokerProbe> {
    return new BrokerProbe(await connect(url));
  }

  /** Messages ready for delivery and consumers of a queue; null when there is no such queue. */
  async queue(name: string): Promise<{ ready: number; consumers: number } | null> {
    const channel = await this.connection.createChannel();
    // A missing queue ends the channel.
    channel.on('error', () => undefined);
    try {
      const { messageCount, consumerCount } = await channel.checkQueue(name);
      await channel.close();
      return { ready: messageCount, consumers: consumerCount };
    } catch (error) {
      if ((error as { code?: number }).code === 404) return null;
      throw error;
    }
  }

  async close(): Promise<void> {
    if (this.isOpen) await this.connection.close();
  }
}
