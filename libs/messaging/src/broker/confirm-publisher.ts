import { withTimeout } from '@platform/time';
import type { ConfirmChannel, Options } from 'amqplib';
import { ENVELOPE_CONTENT_TYPE, type SerializedEnvelope } from '../envelope/create-envelope';
import { PUBLISH_ID_HEADER } from '../headers/delivery-headers';
import {
  BusUnavailableError,
  MessageRefusedError,
  MessageReturnedError,
  PublishTimeoutError,
} from './broker-errors';
import type { BusConnection } from './bus-connection';

/** A message on its way to the broker. */
export interface OutgoingMessage {
  readonly exchange: string;
  readonly routingKey: string;
  readonly content: Buffer;
  readonly options: Options.Publish;
  /**
   * Whether to declare `exchange` as a durable fanout first: publishing to a missing exchange closes the
   * channel.
   */
  readonly declareFanout?: boolean;
  /** Whether the broker may drop the message if it is routed to no queue, instead of returning it. */
  readonly mayBeDropped?: boolean;
}

/**
 * Maximum unconfirmed messages on one channel. A broker this far behind does not keep up, and more messages
 * would only fill memory.
 */
const MAX_UNCONFIRMED = 10_000;

/** Builds the AMQP message of an envelope, addressed to the exchange of its type. */
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
 * AMQP codes with which a broker closes a channel to refuse a request: content too large, access refused, no
 * such exchange, resource locked, precondition failed (e.g. an exchange of another type).
 */
const REFUSALS: ReadonlySet<unknown> = new Set([311, 403, 404, 405, 406]);
const CONTENT_TOO_LARGE = 311;
const PRECONDITION_FAILED = 406;
/** AMQP class id of `basic.publish`. */
const BASIC_CLASS = 60;

/** Whether the broker refused the request, rather than being unreachable. */
export function isRefusal(error: unknown): boolean {
  return REFUSALS.has(codeOf(error));
}

/**
 * Whether the broker refused this one message (because it is too large, for example) rather than its
 * exchange.
 */
export function isMessageRefusal(error: unknown): boolean {
  const code = codeOf(error);
  if (code === CONTENT_TOO_LARGE) return true;
  return code === PRECONDITION_FAILED && amqpField(error, 'classId') === BASIC_CLASS;
}

/** Returns the AMQP code of an error or of its cause; undefined if neither has one. */
export function codeOf(error: unknown): unknown {
  return amqpField(error, 'code');
}

function amqpField(error: unknown, field: 'code' | 'classId'): unknown {
  if (typeof error !== 'object' || error === null) return undefined;
  if (field in error) return (error as Record<string, unknown>)[field];
  return 'cause' in error ? amqpField(error.cause, field) : undefined;
}

/**
 * Declares a durable fanout exchange on its own channel: if an exchange of another type has that name, the
 * broker closes the channel.
 */
async function declareFanout(connection: BusConnection, exchange: string): Promise<void> {
  const channel = await connection.openConfirmChannel();
  // Without a listener, amqplib would close the whole connection over this channel's error.
  channel.on('error', () => undefined);
  await channel.assertExchange(exchange, 'fanout', { durable: true });
  await channel.close();
}

/**
 * Awaits `publishing`.
 * @throws {PublishTimeoutError} if it takes longer than `timeoutMs`
 */
export function confirmedWithin(
  timeoutMs: number,
  { exchange }: OutgoingMessage,
  publishing: Promise<void>,
): Promise<void> {
  return withTimeout(publishing, timeoutMs, () => new PublishTimeoutError(exchange, timeoutMs));
}

/**
 * Publishes one message on its own channel, so that the refusal of this message affects no other. The channel
 * is closed after the attempt, even if the broker stays silent: unclosed channels would use up the
 * connection's limit.
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

/**
 * Maximum one-message channels open at the same time. A broker allows about 2,000 channels per connection.
 */
const MAX_SINGLE_CHANNELS = 16;

/** Publishes with confirms on one shared channel of a bus. Opens a new channel when that one has died. */
export class ConfirmPublisher {
  private opening: Promise<PublishChannel> | null = null;
  private opened: PublishChannel | null = null;
  private readonly singleChannels = new Semaphore(MAX_SINGLE_CHANNELS);

  constructor(private readonly connection: BusConnection) {}

  /**
   * Resolves when the broker has confirmed the message; settles within `timeoutMs`.
   * @throws {BusUnavailableError} at once without a connection, or when the channel dies
   * @throws {MessageReturnedError} if the message is routed to no queue
   * @throws {MessageRefusedError} if a queue that should accept it refuses it
   * @throws {PublishTimeoutError} if the broker stays silent
   */
  publish(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    return confirmedWithin(timeoutMs, message, this.attempt(message, timeoutMs));
  }

  /**
   * Publishes like {@link publish} but on its own channel. For a message that the broker may refuse: a
   * refusal there fails no other message in flight.
   */
  publishAlone(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    return this.singleChannels.run(() => publishAlone(this.connection, message, timeoutMs));
  }

  /**
   * Whether the broker responds, with a confirm or a refusal, to a message that is routed to no queue.
   * Distinguishes an unavailable bus from one unavailable queue.
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
   * Publishes on the shared channel. When the broker closes that channel over one message, every message in
   * flight there fails. Each of them is then published once more on its own channel, so that only the message
   * at fault is refused again.
   */
  private async attempt(message: OutgoingMessage, timeoutMs: number): Promise<void> {
    this.connection.requireUsable();
    // An open channel is used without `await`, which would delay each of many messages by extra microtasks.
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
    // Envelopes give the fanout of the service's name as their source address, so it should exist. Publishing
    // does not need it: a failure is only logged.
    declareFanout(this.connection, service).catch((error: unknown) => {
      logger.warn(`the source address of this program was not declared: ${String(error)}`);
    });
    opening.catch(() => {
      // This caller gets the error; the next caller opens another channel.
      if (this.opening === opening) this.opening = null;
    });
    return opening;
  }
}

/** Runs at most `limit` tasks at a time. */
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
 * One confirm channel, until it closes. Distinguishes confirmed, returned and lost messages. The broker
 * returns an unroutable message first and then confirms it, so a confirm alone proves nothing.
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
    // Without a listener, amqplib would close the whole connection over this channel's error.
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

  /** Whether the broker closed the channel to refuse a request, rather than the channel being lost. */
  get isRefused(): boolean {
    return isRefusal(this.closeReason);
  }

  /**
   * Resolves when the broker has confirmed the message.
   * @throws {MessageReturnedError} if the message is routed to no queue
   * @throws {MessageRefusedError} if a queue that should accept it refuses it; other queues may have accepted
   * it
   * @throws {BusUnavailableError} if the channel died, possibly because the broker refused something; the
   * message may have arrived
   * @throws {RangeError | TypeError} if the message cannot be encoded; nothing was sent
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
      // On a closed channel, an unconfirmed message was lost rather than refused.
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
