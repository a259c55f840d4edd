import { withTimeout } from '@platform/time';
import type { ConfirmChannel, Options } from 'amqplib';
import { ENVELOPE_CONTENT_TYPE, type SerializedEnvelope } from '../envelope/create-envelope';
import {
  BusUnavailableError,
  MessageRefusedError,
  MessageReturnedError,
  PublishTimeoutError,
} from '../errors';
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

/**
 * AMQP codes with which a broker closes a channel because of what was asked of it: content too large, access
 * refused, no such exchange, locked, precondition failed (e.g. an exchange of another type).
 */
const REFUSALS: ReadonlySet<unknown> = new Set([311, 403, 404, 405, 406]);
const CONTENT_TOO_LARGE = 311;
const PRECONDITION_FAILED = 406;
/** AMQP's class of methods that `basic.publish` belongs to. */
const BASIC_CLASS = 60;

/** Whether the broker refused what was asked, rather than that it could not be asked. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(codeOf(error));
}

/** Whether the broker refused this one message (it is too large, say) rather than its exchange. */
export function isMessageRefusal(error: unknown): boolean {
  const code = codeOf(error);
  if (code === CONTENT_TOO_LARGE) return true;
  return code === PRECONDITION_FAILED && amqpField(error, 'classId') === BASIC_CLASS;
}

/** The AMQP code of an error, or of what caused it; undefined without one. */
export function codeOf(error: unknown): unknown {
  return amqpField(error, 'code');
}

function amqpField(error: unknown, field: 'code' | 'classId'): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  if (field in error) return (error as Record<string, unknown>)[field];
  return 'cause' in error ? amqpField(error.cause, field) : undefined;
}

/**
 * Declares a durable fanout over a channel of its own: the broker closes the channel over an exchange of
 * another type.
 */
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

/**
 * Publishes one message over a channel of its own, so that whatever the broker has against it harms no other.
 * The channel ends with the attempt, also when the broker stays silent: channels that wait for ever would use
 * up the connection's.
 * @throws as {@link PublishChannel.publish}
 * @throws {PublishTimeoutError} if the broker does not confirm within `timeoutMs`
 */
export async function publishAlone(
  connection: BusConnection,
  message: OutgoingMessage,
  timeoutMs: number,
): Promise<void> {
  const channel = await PublishChannel.open(connection);
  try {
    await confirmedWithin(timeoutMs, message, channel.publish(message));
  } finally {
    channel.close().catch((error: unknown) => {
      connection.options.logger.debug?.(`closing a channel: ${String(error)}`);
    });
  }
}

/** Channels that publish one message each at the same time: a broker allows some 2,000 per connection. */
const MAX_SINGLE_CHANNELS = 16;

/** Publishes with confirms over one shared channel of a bus; opens a new one when that has died. */
export class ConfirmPublisher {
  private opening: Promise<PublishChannel> | null = null;
  private opened: PublishChannel | null = null;
  private readonly singleChannels = new Semaphore(MAX_SINGLE_CHANNELS);

  constructor(private readonly connection: BusConnection) {}

  /** Resolves when the broker has taken responsibility for the message; never later than `timeoutMs`.
   *  @throws {BusUnavailableError} at once without a connection, or when the channel dies
   *  @throws {MessageReturnedError} if no queue takes it
   *  @throws {MessageRefusedError} if a queue that should take it refuses
   *  @throws {PublishTimeoutError} if the broker stays silent */
  publish(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    return confirmedWithin(timeoutMs, message, this.attempt(message, timeoutMs));
  }

  /**
   * As {@link publish}, over a channel of its own. For a message that the broker may refuse: no other is in
   * flight there.
   */
  publishAlone(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    return this.singleChannels.run(() => publishAlone(this.connection, message, timeoutMs));
  }

  /**
   * Whether the broker confirms a message that no queue is to take. Tells a bus that is away from one queue
   * that is.
   */
  async isResponding(timeoutMs: number): Promise<boolean> {
    const { service } = this.connection.options;
    const message = {
      exchange: '',
      routingKey: `${service}.is-the-bus-there`,
      content: Buffer.alloc(0),
      options: {},
      mayBeDropped: true,
    };
    try {
      await confirmedWithin(timeoutMs, message, publishAlone(this.connection, message, timeoutMs));
      return true;
    } catch (error) {
      return isRefusal(error);
    }
  }

  /**
   * The broker closes a channel over one message, and with it everything that is in flight there. Each of
   * these goes once more, alone: then the refusal is its own.
   */
  private async attempt(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    this.connection.requireUsable();
    // Waiting for what is there would cost each of many messages some turns more.
    const channel = this.opened?.isOpen === true ? this.opened : await this.channel();
    try {
      await channel.publish(message);
    } catch (error) {
      if (!channel.isRefused) throw error;
      await this.publishAlone(message, timeoutMs);
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

/** Runs at most `limit` pieces of work at a time. */
class Semaphore {
  private readonly waiting: (() => void)[] = [];
  private running = 0;

  constructor(private readonly limit: number) {}

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.running < this.limit) this.running += 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.running -= 1;
      else next();
    }
  }
}

/**
 * One confirm channel for as long as it lives. It tells apart what was confirmed, returned and lost: the
 * broker confirms a returned message too, after it has returned it, so a confirm alone proves nothing.
 */
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

  /**
   * Resolves when the broker has taken responsibility for the message.
   * @throws {MessageReturnedError} if no queue takes it
   * @throws {MessageRefusedError} if a queue that should take it refuses; others may have it
   * @throws {BusUnavailableError} if the channel died, perhaps because the broker refused something; it may
   * have arrived
   * @throws {RangeError | TypeError} if it cannot be encoded; nothing was sent
   */
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
      const isConfirmed = await new Promise<boolean>((resolve) => {
        this.channel.publish(exchange, routingKey, content, properties, (error: unknown) => {
          resolve(error === null);
        });
      });
      if (!isConfirmed) throw new MessageRefusedError(exchange, routingKey);
    } catch (error) {
      // What is unconfirmed on a channel that has closed was not refused by itself.
      throw this.closeReason === null ? error : this.unavailable(this.closeReason);
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
