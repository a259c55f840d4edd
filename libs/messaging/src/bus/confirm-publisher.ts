import { PublishTimeoutError } from '../errors';
import type { BusLink } from './bus-link';
import type { OutgoingMessage, PublishChannel } from './publish-channel';
import { openChannel } from './open-channel';
import { within } from './within';

/** Publishes with confirms over one shared channel of a bus and opens a new one when that has died. */
export class ConfirmPublisher {
  private opening: Promise<PublishChannel> | null = null;

  constructor(private readonly link: BusLink) {}

  /** Resolves when the broker has taken responsibility for the message; never later than `timeoutMs`.
   *  @throws {BusUnavailableError} at once without a connection, or when the channel dies
   *  @throws {MessageReturnedError} if no queue wanted it
   *  @throws {PublishTimeoutError} if the broker stayed silent */
  async publish(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    await within(this.send(message), timeoutMs, () => new PublishTimeoutError(message.exchange, timeoutMs));
  }

  private async send(message: OutgoingMessage): Promise<void> {
    const channel = await this.channel();
    await channel.publish(message);
  }

  private async channel(): Promise<PublishChannel> {
    // Also refuses early while the broker blocks the connection: what is written now would wait in memory.
    this.link.getConnection();
    const current = this.opening;
    if (current !== null) {
      const channel = await current;
      if (channel.isOpen) return channel;
      if (this.opening === current) this.opening = null;
      return this.channel();
    }
    const opening = openChannel(this.link);
    this.opening = opening;
    opening.catch(() => {
      // The caller hears of it; the next one tries again.
      if (this.opening === opening) this.opening = null;
    });
    return opening;
  }
}
