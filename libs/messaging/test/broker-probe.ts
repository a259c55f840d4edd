import { type ChannelModel, connect } from 'amqplib';

/** Reads exact figures over AMQP, because the management API lags by seconds. */
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

  /** Returns the number of ready messages and of consumers of a queue; null if there is no such queue. */
  async queue(name: string): Promise<{ ready: number; consumers: number } | null> {
    const channel = await this.connection.createChannel();
    // The broker closes the channel if the queue is missing.
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
