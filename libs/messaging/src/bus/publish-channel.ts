import type { ConfirmChannel, Options } from 'amqplib';
import { BusUnavailableError, MessageReturnedError } from '../errors';

/** A message on its way to the broker. */
export interface OutgoingMessage {
  readonly exchange: string;
  readonly routingKey: string;
  readonly content: Buffer;
  readonly options: Options.Publish;
  /** Declare `exchange` as a durable fanout first, since publishing to a missing exchange kills the channel. */
  readonly declareFanout?: boolean;
}

/** More unconfirmed messages than this mean a broker that does not keep up; sending on would only fill memory. */
const MAX_UNCONFIRMED = 10_000;

/** The header that tells which publish a returned message was; MassTransit uses the same one. */
export const PUBLISH_ID_HEADER = 'publishId';

/** One confirm channel for as long as it lives: confirmed, returned and lost are told apart. The broker confirms a returned
 *  message too, after returning it, so a confirm alone proves nothing. */
export class PublishChannel {
  private readonly returned = new Map<string, string>();
  private readonly declared = new Map<string, Promise<unknown>>();
  private sequence = 0;
  private unconfirmed = 0;
  private closeReason: Error | null = null;

  constructor(
    private readonly bus: string,
    private readonly channel: ConfirmChannel,
  ) {
    channel.on('return', (message) => {
      const publishId = String(message.properties.headers?.[PUBLISH_ID_HEADER]);
      this.returned.set(
        publishId,
        (message.fields as unknown as { replyText?: string }).replyText ?? 'returned',
      );
    });
    // Without a listener amqplib would take the whole connection down for one channel's error.
    channel.on('error', (error) => {
      this.closeReason = error;
    });
    channel.on('close', () => {
      this.closeReason ??= new Error('channel closed');
    });
  }

  get isOpen(): boolean {
    return this.closeReason === null;
  }

  /** Code the broker closed the channel with, e.g. 404 for a missing exchange; null while open. */
  get closeCode(): number | null {
    return (this.closeReason as { code?: number } | null)?.code ?? null;
  }

  /** Resolves when the broker has taken responsibility for the message.
   *  @throws {MessageReturnedError} if no queue wanted it
   *  @throws {BusUnavailableError} if the channel died or the broker refused it; it may have arrived */
  async publish(message: OutgoingMessage): Promise<void> {
    if (this.unconfirmed >= MAX_UNCONFIRMED)
      throw new BusUnavailableError(this.bus, 'too many unconfirmed messages');
    if (message.declareFanout) await this.declareFanout(message.exchange);
    const publishId = String((this.sequence += 1));
    this.unconfirmed += 1;
    try {
      await this.confirmed(message, publishId);
    } catch (error) {
      throw new BusUnavailableError(this.bus, (error as Error).message, { cause: error });
    } finally {
      this.unconfirmed -= 1;
    }
    const replyText = this.returned.get(publishId);
    if (replyText === undefined) return;
    this.returned.delete(publishId);
    throw new MessageReturnedError(message.exchange, message.routingKey, replyText);
  }

  async close(): Promise<void> {
    if (this.isOpen) await this.channel.close();
  }

  private confirmed(message: OutgoingMessage, publishId: string): Promise<void> {
    const headers = {
      ...(message.options.headers as Record<string, unknown>),
      [PUBLISH_ID_HEADER]: publishId,
    };
    const options = { ...message.options, headers, mandatory: true };
    return new Promise((resolve, reject) => {
      this.channel.publish(
        message.exchange,
        message.routingKey,
        message.content,
        options,
        (error: unknown) => {
          if (error === null) resolve();
          else reject(this.closeReason ?? (error as Error));
        },
      );
    });
  }

  private async declareFanout(exchange: string): Promise<void> {
    let declared = this.declared.get(exchange);
    if (declared === undefined) {
      declared = this.assertFanout(exchange);
      this.declared.set(exchange, declared);
    }
    await declared;
  }

  private async assertFanout(exchange: string): Promise<void> {
    try {
      await this.channel.assertExchange(exchange, 'fanout', { durable: true });
    } catch (error) {
      throw new BusUnavailableError(this.bus, (error as Error).message, { cause: error });
    }
  }
}
