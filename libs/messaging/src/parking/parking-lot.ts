import { SECOND_MS } from '@platform/time';
import { type Channel, type ChannelModel, type Message, connect } from 'amqplib';
import type { Bus } from '@platform/contracts';
import { PublishChannel } from '../bus/publish-channel';
import { within } from '../bus/within';
import { forwardedProperties } from '../consuming/delivery-headers';
import { BusUnavailableError, PublishTimeoutError } from '../errors';
import { type ParkedMessage, parkedMessage, replayHeaders } from './parked-message';

const CONNECT_TIMEOUT_MS = 5 * SECOND_MS;
const CONFIRM_TIMEOUT_MS = 5 * SECOND_MS;

/** A queue of parked messages and the one that they were meant for. */
export interface ParkingQueue {
  /** e.g. `orders_error`. */
  readonly queue: string;
  /** e.g. `orders`. */
  readonly source: string;
}

type Choice = (message: ParkedMessage) => boolean;
type Fate = 'stays' | 'goes';

/** Error and skipped queues of one bus, for operators: look at what lies there, send it to its queue again, or throw it away.
 *  What one of them looks at is invisible to another meanwhile; whatever stays, stays in its order. */
export class ParkingLot {
  private constructor(
    private readonly bus: Bus,
    private readonly connection: ChannelModel,
  ) {}

  /** @throws {BusUnavailableError} without a connection within 5 s; its text names no address */
  static async connect(bus: Bus, url: string): Promise<ParkingLot> {
    try {
      const connection = await connect(url, {
        timeout: CONNECT_TIMEOUT_MS,
        clientProperties: { connection_name: `operator (${bus})` },
      });
      // Without a listener a connection that breaks would end the process; what is under way fails by itself.
      connection.on('error', () => undefined);
      return new ParkingLot(bus, connection);
    } catch (error) {
      // The code only: a text might hold the address with its password.
      const { code } = error as { code?: unknown };
      throw new BusUnavailableError(bus, typeof code === 'string' ? code : 'connection refused', {
        cause: error,
      });
    }
  }

  /** The chosen messages, oldest first, at most `limit`; a queue that does not exist is empty. */
  async list(queue: string, choose: Choice, limit: number): Promise<ParkedMessage[]> {
    const found: ParkedMessage[] = [];
    await this.visit(queue, (message) => {
      if (found.length < limit && choose(message)) found.push(message);
      return Promise.resolve('stays');
    });
    return found;
  }

  /** Sends the chosen messages to their queue again, as they came first: same message id, same body, no attempts behind them. A
   *  message leaves the parking queue once the broker has confirmed it there, so a crash between the two sends it twice, and the
   *  receiver's inbox applies it once.
   *  @throws {MessageReturnedError} when the source queue does not exist; the message stays parked */
  async replay({ queue, source }: ParkingQueue, choose: Choice): Promise<ParkedMessage[]> {
    const outgoing = new PublishChannel(this.bus, await this.connection.createConfirmChannel());
    const replayed: ParkedMessage[] = [];
    try {
      await this.visit(queue, async (message, delivery) => {
        if (!choose(message)) return 'stays';
        await this.send(outgoing, source, delivery);
        replayed.push(message);
        return 'goes';
      });
    } finally {
      await outgoing.close();
    }
    return replayed;
  }

  /** Throws the chosen messages away for good and gives them back once more. */
  async discard(queue: string, choose: Choice): Promise<ParkedMessage[]> {
    const discarded: ParkedMessage[] = [];
    await this.visit(queue, (message) => {
      if (!choose(message)) return Promise.resolve<Fate>('stays');
      discarded.push(message);
      return Promise.resolve<Fate>('goes');
    });
    return discarded;
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  /** Shows every message that lies there now; one that comes meanwhile, perhaps because its replay failed, is not visited. */
  private async visit(
    queue: string,
    decide: (message: ParkedMessage, delivery: Message) => Promise<Fate>,
  ): Promise<void> {
    const channel = await this.connection.createChannel();
    channel.on('error', () => undefined);
    try {
      for (let left = await countMessages(channel, queue); left > 0; left -= 1) {
        const delivery = await channel.get(queue);
        if (delivery === false) break;
        const fate = await decide(parkedMessage(queue, delivery), delivery);
        if (fate === 'goes') channel.ack(delivery);
      }
    } finally {
      // Whatever was not acknowledged goes back to where it was.
      await channel.close().catch((error: unknown) => {
        if ((error as Error).name !== 'IllegalOperationError') throw error;
      });
    }
  }

  private async send(outgoing: PublishChannel, source: string, delivery: Message): Promise<void> {
    const options = forwardedProperties(delivery, replayHeaders(delivery));
    const message = { exchange: '', routingKey: source, content: delivery.content, options };
    await within(
      outgoing.publish(message),
      CONFIRM_TIMEOUT_MS,
      () => new PublishTimeoutError('', CONFIRM_TIMEOUT_MS),
    );
  }
}

async function countMessages(channel: Channel, queue: string): Promise<number> {
  try {
    return (await channel.checkQueue(queue)).messageCount;
  } catch (error) {
    // The broker closes the channel over a missing queue.
    if ((error as { code?: unknown }).code === 404) return 0;
    throw error;
  }
}
