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
  /** Take the message although no queue wants it, and drop it then. */
  readonly mayBeDropped?: boolean;
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
    headers: envelope.headers,
  };
  const content = Buffer.from(envelope.body);
  const { exchange, needsReceiver } = envelope;
  return { exchange, routingKey: '', content, options, declareFanout: true, mayBeDropped: !needsReceiver };
}

/** AMQP codes with which a broker closes a channel because of what was asked of it: content too large, access refused, no such
 *  exchange, locked, precondition failed (e.g. an exchange of another type). */
const REFUSALS: ReadonlySet<unknown> = new Set([311, 403, 404, 405, 406]);

/** Whether the broker refused what was asked, rather than that it could not be asked. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(codeOf(error));
}

/** The AMQP code of an error, or of what caused it; undefined without one. */
export function codeOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  if ('code' in error) return error.code;
  return 'cause' in error ? codeOf(error.cause) : undefined;
}

/** Declares a durable fanout over a channel of its own: the broker closes the channel over an exchange of another type. */
async function declareFanout(connection: BusConnection, exchange: string): Promise<void> {
  const channel = await connection.openConfirmChannel();
  // Without a listener amqplib would take the whole connection down.
  channel.on('error', () => undefined);
  await channel.assertExchange(exchange, 'fanout', { durable: true });
  await channel.close();
}

/** @throws {PublishTimeoutError} if publishing the message takes longer than `timeoutMs` */
export function confirmedWithin(
  timeoutMs: number,
  { exchange }: OutgoingMessage,
  publishing: Promise<void>,
): Promise<void> {
  return withTimeout(publishing, timeoutMs, () => new PublishTimeoutError(exchange, timeoutMs));
}

/** Publishes one message over a channel of its own, so that whatever the broker has against it harms no other.
 *  @throws as {@link PublishChannel.publish} */
export async function publishAlone(connection: BusConnection, message: OutgoingMessage): Promise<void> {
  const channel = await PublishChannel.open(connection);
  try {
    await channel.publish(message);
  } finally {
    channel.close().catch((error: unknown) => {
      connection.options.logger.debug?.(`closing a channel: ${String(error)}`);
    });
  }
}

/** Publishes with confirms over one shared channel of a bus; opens a new one when that has died. */
export class ConfirmPublisher {
  private opening: Promise<PublishChannel> | null = null;
  private opened: PublishChannel | null = null;
  /** The publishes over channels of their own, one after the other: a broker allows some 2,000 channels. */
  private alone: Promise<unknown> = Promise.resolve();

  constructor(private readonly connection: BusConnection) {}

  /** Resolves when the broker has taken responsibility for the message; never later than `timeoutMs`.
   *  @throws {BusUnavailableError} at once without a connection, or when the channel dies
   *  @throws {MessageReturnedError} if no queue takes it
   *  @throws {PublishTimeoutError} if the broker stays silent */
  publish(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    return confirmedWithin(timeoutMs, message, this.attempt(message));
  }

  /** The broker closes a channel over one message, and with it everything that is in flight there. Each of these goes once more, alone:
   *  then the refusal is its own. */
  private async attempt(message: OutgoingMessage): Promise<void> {
    this.connection.requireUsable();
    // Waiting for what is there would cost each of many messages some turns more.
    const channel = this.opened?.isOpen === true ? this.opened : await this.channel();
    try {
      await channel.publish(message);
    } catch (error) {
      if (!channel.isRefused) throw error;
      const publish = (): Promise<void> => publishAlone(this.connection, message);
      const published = this.alone.then(publish, publish);
      this.alone = published;
      await published;
    }
  }

  private async channel(): Promise<PublishChannel> {
    for (;;) {
      const opening = (this.opening ??= this.open());
      const channel = await opening;
      this.opened = channel;
      if (channel.isOpen) return channel;
      if (this.opening === opening) this.opening = null;
    }
  }

  private open(): Promise<PublishChannel> {
    const opening = PublishChannel.open(this.connection);
    const { logger, service } = this.connection.options;
    // Envelopes name this exchange as their source.
    declareFanout(this.connection, service).catch((error: unknown) => {
      logger.warn(`the source address of this program was not declared: ${String(error)}`);
    });
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
  private readonly declaring = new Map<string, Promise<unknown>>();
  private readonly declared = new Set<string>();
  private sequence = 0;
  private unconfirmed = 0;
  private closeReason: Error | null = null;

  constructor(
    private readonly bus: string,
    private readonly channel: ConfirmChannel,
    private readonly declare: (exchange: string) => Promise<void> = () => Promise.resolve(),
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
    const channel = await connection.openConfirmChannel();
    return new PublishChannel(connection.options.bus, channel, (exchange) =>
      declareFanout(connection, exchange),
    );
  }

  get isOpen(): boolean {
    return this.closeReason === null;
  }

  /** Whether the broker closed it because of what was asked of it, rather than that it was lost. */
  get isRefused(): boolean {
    return isRefusal(this.closeReason);
  }

  /** Resolves when the broker has taken responsibility for the message.
   *  @throws {MessageReturnedError} if no queue takes it
   *  @throws {BusUnavailableError} if the channel died or the broker refused it; it may have arrived */
  async publish(message: OutgoingMessage): Promise<void> {
    const { exchange, routingKey, content, options, mayBeDropped = false } = message;
    if (this.unconfirmed >= MAX_UNCONFIRMED)
      throw new BusUnavailableError(this.bus, 'too many unconfirmed messages');
    if (message.declareFanout && !this.declared.has(exchange)) await this.declareFanout(exchange);
    const publishId = String((this.sequence += 1));
    const headers = { ...(options.headers as Record<string, unknown>), [PUBLISH_ID_HEADER]: publishId };
    this.unconfirmed += 1;
    try {
      const properties = { ...options, headers, mandatory: !mayBeDropped };
      const confirmed = new Promise<void>((resolve, reject) => {
        this.channel.publish(exchange, routingKey, content, properties, (error: unknown) => {
          if (error === null) resolve();
          else reject(this.closeReason ?? (error as Error));
        });
      });
      await confirmed;
    } catch (error) {
      throw this.unavailable(error);
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
  private async declareFanout(exchange: string): Promise<void> {
    const declaring = this.declaring.get(exchange) ?? this.declare(exchange);
    this.declaring.set(exchange, declaring);
    try {
      await declaring;
      this.declared.add(exchange);
    } catch (error) {
      throw this.unavailable(error);
    } finally {
      this.declaring.delete(exchange);
    }
  }

  private unavailable(cause: unknown): BusUnavailableError {
    return new BusUnavailableError(this.bus, (cause as Error).message, { cause });
  }
}
