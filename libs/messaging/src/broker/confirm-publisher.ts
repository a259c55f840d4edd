import { withTimeout } from '@platform/time';
import type { ConfirmChannel, Options } from 'amqplib';
import { ENVELOPE_CONTENT_TYPE, type SerializedEnvelope } from '../envelope/create-envelope';
import { BusUnavailableError, MessageReturnedError, PublishTimeoutError } from '../errors';
import type { BusConnection } from './bus-connection';

/** A message on its way to the broker. */
export interface OutgoingMessage {
  readonly exchange: string;
  readonly routingKey: string;
  readonly content: Buffer;
  readonly options: Options.Publish;
  /** Declare `exchange` as a durable fanout first: publishing to a missing exchange kills the channel. */
  readonly declareFanout?: boolean;
}

/** More unconfirmed messages than this mean that the broker does not keep up; more would only fill memory. */
const MAX_UNCONFIRMED = 10_000;

/** The header that tells which publish a returned message belongs to; MassTransit uses the same one. */
export const PUBLISH_ID_HEADER = 'publishId';

/** The AMQP message of an envelope, addressed to the exchange of its type. */
export function envelopeMessage(
  envelope: SerializedEnvelope,
  properties: { readonly correlationId?: string; readonly replyTo?: string } = {},
): OutgoingMessage {
  const options = {
    ...properties,
    contentType: ENVELOPE_CONTENT_TYPE,
    messageId: envelope.messageId,
    persistent: true,
    headers: { ...envelope.headers },
  };
  const content = Buffer.from(envelope.body);
  return { exchange: envelope.exchange, routingKey: '', content, options, declareFanout: true };
}

/** @throws {PublishTimeoutError} if publishing the message takes longer than `timeoutMs` */
export function confirmedWithin(
  timeoutMs: number,
  { exchange }: OutgoingMessage,
  publishing: Promise<void>,
): Promise<void> {
  return withTimeout(publishing, timeoutMs, () => new PublishTimeoutError(exchange, timeoutMs));
}

/** Publishes with confirms over one shared channel of a bus; opens a new one when that has died. */
export class ConfirmPublisher {
  private opening: Promise<PublishChannel> | null = null;

  constructor(private readonly connection: BusConnection) {}

  /** Resolves when the broker has taken responsibility for the message; never later than `timeoutMs`.
   *  @throws {BusUnavailableError} at once without a connection, or when the channel dies
   *  @throws {MessageReturnedError} if no queue takes it
   *  @throws {PublishTimeoutError} if the broker stays silent */
  publish(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    const publishing = this.channel().then((channel) => channel.publish(message));
    return confirmedWithin(timeoutMs, message, publishing);
  }

  private async channel(): Promise<PublishChannel> {
    this.connection.requireUsable();
    for (;;) {
      const opening = (this.opening ??= this.open());
      const channel = await opening;
      if (channel.isOpen) return channel;
      if (this.opening === opening) this.opening = null;
    }
  }

  private open(): Promise<PublishChannel> {
    const opening = PublishChannel.open(this.connection);
    opening.catch(() => {
      // The caller gets the error; the next one tries again.
      if (this.opening === opening) this.opening = null;
    });
    return opening;
  }
}

/** One confirm channel for as long as it lives. It tells apart what was confirmed, returned and lost: the broker confirms a
 *  returned message too, after it has returned it, so a confirm alone proves nothing. */
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
    channel.on('return', ({ properties, fields }) => {
      const publishId = String(properties.headers?.[PUBLISH_ID_HEADER]);
      this.returned.set(publishId, (fields as unknown as { replyText?: string }).replyText ?? 'returned');
    });
    // Without a listener amqplib would take the whole connection down for one channel's error.
    channel.on('error', (error) => {
      this.closeReason = error;
    });
    channel.on('close', () => {
      this.closeReason ??= new Error('channel closed');
    });
  }

  /** @throws {BusUnavailableError} without a usable connection */
  static async open(connection: BusConnection): Promise<PublishChannel> {
    return new PublishChannel(connection.options.bus, await connection.openConfirmChannel());
  }

  get isOpen(): boolean {
    return this.closeReason === null;
  }

  /** Code the broker closed the channel with, e.g. 404 for a missing exchange; null while open. */
  get closeCode(): number | null {
    return (this.closeReason as { code?: number } | null)?.code ?? null;
  }

  /** Resolves when the broker has taken responsibility for the message.
   *  @throws {MessageReturnedError} if no queue takes it
   *  @throws {BusUnavailableError} if the channel died or the broker refused it; it may have arrived */
  async publish(message: OutgoingMessage): Promise<void> {
    const { exchange, routingKey, content, options } = message;
    if (this.unconfirmed >= MAX_UNCONFIRMED)
      throw new BusUnavailableError(this.bus, 'too many unconfirmed messages');
    if (message.declareFanout) await this.guarded(this.declareFanout(exchange));
    const publishId = String((this.sequence += 1));
    const headers = { ...(options.headers as Record<string, unknown>), [PUBLISH_ID_HEADER]: publishId };
    this.unconfirmed += 1;
    try {
      const properties = { ...options, headers, mandatory: true };
      const confirmed = new Promise<void>((resolve, reject) => {
        this.channel.publish(exchange, routingKey, content, properties, (error: unknown) => {
          if (error === null) resolve();
          else reject(this.closeReason ?? (error as Error));
        });
      });
      await this.guarded(confirmed);
    } finally {
      this.unconfirmed -= 1;
    }
    const replyText = this.returned.get(publishId);
    if (replyText === undefined) return;
    this.returned.delete(publishId);
    throw new MessageReturnedError(exchange, routingKey, replyText);
  }

  async close(): Promise<void> {
    if (this.isOpen) await this.channel.close();
  }

  /** Declares the exchange once per channel. */
  private declareFanout(exchange: string): Promise<unknown> {
    let declared = this.declared.get(exchange);
    if (declared === undefined) {
      declared = this.channel.assertExchange(exchange, 'fanout', { durable: true });
      this.declared.set(exchange, declared);
    }
    return declared;
  }

  private async guarded(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      throw new BusUnavailableError(this.bus, (error as Error).message, { cause: error });
    }
  }
}
