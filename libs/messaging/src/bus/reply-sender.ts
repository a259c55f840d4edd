import type { Options } from 'amqplib';
import type { Address } from '../envelope/address';
import { MessageReturnedError, PublishTimeoutError } from '../errors';
import type { BusLink } from './bus-link';
import { openChannel } from './open-channel';
import type { OutgoingMessage, PublishChannel } from './publish-channel';
import { within } from './within';

const NOT_FOUND = 404;
const REPLY_TIMEOUT_MS = 2_000;

/** Sends answers, each over a channel of its own: a requester that has gone takes its exchange along, and publishing to a missing
 *  exchange kills the channel, which must not be one that others use. */
export class ReplySender {
  constructor(private readonly link: BusLink) {}

  /** True when the answer was taken; false when nobody waits for it at that address any more.
   *  @throws {BusUnavailableError | PublishTimeoutError} if it could not be tried; try again later */
  async send(address: Address, content: Buffer, options: Options.Publish): Promise<boolean> {
    for (const [exchange, routingKey] of routes(address)) {
      if (await this.trySend({ exchange, routingKey, content, options })) return true;
    }
    return false;
  }

  private async trySend(message: OutgoingMessage): Promise<boolean> {
    const channel = await openChannel(this.link);
    try {
      const tooLate = (): Error => new PublishTimeoutError(message.exchange, REPLY_TIMEOUT_MS);
      await within(channel.publish(message), REPLY_TIMEOUT_MS, tooLate);
      return true;
    } catch (error) {
      if (error instanceof MessageReturnedError || channel.closeCode === NOT_FOUND) return false;
      throw error;
    } finally {
      this.discard(channel);
    }
  }

  private discard(channel: PublishChannel): void {
    channel.close().catch((error: unknown) => {
      this.link.logger.debug?.(`closing a reply channel: ${String(error)}`);
    });
  }
}

/** Exchange and routing key to try, in order. Our own and MassTransit's endpoints are an exchange in front of a queue of the same
 *  name, other clients may have the queue alone. */
function routes({ kind, name }: Address): [exchange: string, routingKey: string][] {
  if (kind === 'exchange') return [[name, '']];
  return kind === 'queue'
    ? [
        ['', name],
        [name, ''],
      ]
    : [
        [name, ''],
        ['', name],
      ];
}
