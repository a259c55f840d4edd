import { createHash } from 'node:crypto';
import type { Bus } from '@platform/contracts';
import { shuffledAddressesOf } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { type Channel, type ChannelModel, type Message, connect } from 'amqplib';
import { tryReadEnvelope } from '../envelope/read-envelope';
import {
  ATTEMPTS_HEADER,
  EXCHANGE_HEADER,
  POSTPONEMENTS_HEADER,
  REASON_HEADER,
  RESPONSE_TRIES_HEADER,
  TIMEOUTS_HEADER,
  attemptsOf,
  forwardedProperties,
  senderHeaders,
} from '../headers/delivery-headers';
import { BusUnavailableError } from './broker-errors';
import { confirmedWithin, PublishChannel } from './confirm-publisher';
import { guardHeaders } from './header-guard';

const CONNECT_TIMEOUT_MS = 5 * SECOND_MS;
const CONFIRM_TIMEOUT_MS = 5 * SECOND_MS;

/** A message that its receiver, or the broker, moved to an error or skipped queue. */
export interface FailedMessage {
  /** The message's id, or `body-` and 32 hex digits of the body's SHA-256 if the sender gave none. */
  readonly id: string;
  /** The queue that holds it, e.g. `orders_error`. */
  readonly queue: string;
  /** The type that the message declares, without namespace; null if it declares none. */
  readonly type: string | null;
  /**
   * One of `ERROR_REASONS`, or the broker's own reason (e.g. `delivery-limit`) if the broker moved the
   * message; `unknown` if neither is recorded.
   */
  readonly reason: string;
  readonly errorType: string | null;
  readonly errorMessage: string | null;
  /** ISO 8601; null when unknown. */
  readonly parkedAt: string | null;
  /** Number of times the message waited in the broker for another attempt. */
  readonly attempts: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** An error or skipped queue, and the queue that its messages came from. */
export interface ErrorQueue {
  /** e.g. `orders_error`. */
  readonly queue: string;
  /** e.g. `orders`. */
  readonly source: string;
}

type Choice = (message: FailedMessage) => boolean;
/** Called after each chosen message with the number of messages done so far. */
type Progress = (done: number) => void;

/** The state of a queue. */
export interface QueueState {
  /** Number of messages that are not delivered to a consumer. */
  readonly messages: number;
  readonly consumers: number;
  /** The message at the head of the queue; null unless requested. */
  readonly first: FailedMessage | null;
}

/**
 * Error and skipped queues of one bus, for operators: list, replay or discard their messages. While one
 * operator's command holds a message, other commands do not see it. Messages that stay keep their order.
 */
export class ErrorQueues {
  private constructor(
    private readonly bus: Bus,
    private readonly connection: ChannelModel,
  ) {}

  /**
   * Connects to the first address that accepts the connection, waiting at most 5 s for each.
   * @throws {BusUnavailableError} if none does; the text names no address
   */
  static async connect(bus: Bus, url: string): Promise<ErrorQueues> {
    try {
      const connection = await connectToAny(url, {
        timeout: CONNECT_TIMEOUT_MS,
        clientProperties: { connection_name: `operator (${bus})` },
      });
      // Without a listener, a broken connection would end the process. The running command fails anyway.
      connection.on('error', () => undefined);
      // Messages that the broker itself dead-lettered keep their sender's headers, which may be malicious.
      guardHeaders(connection);
      return new ErrorQueues(bus, connection);
    } catch (error) {
      // Only the code: the text might contain the address with its password.
      const { code } = error as { code?: unknown };
      const detail = typeof code === 'string' ? code : 'connection refused';
      throw new BusUnavailableError(bus, detail, { cause: error });
    }
  }

  /** Returns the chosen messages, oldest first, at most `limit`. A missing queue counts as empty. */
  list(queue: string, choose: Choice, limit: number): Promise<FailedMessage[]> {
    return this.visit(queue, choose, { limit });
  }

  /**
   * Returns the state of the queue. A missing queue counts as empty.
   * @param looksInside whether to read the message at the head. Do not set it for a consumed queue, where
   * each read counts as a delivery
   */
  async state(queue: string, looksInside: boolean): Promise<QueueState> {
    const channel = await this.connection.createChannel();
    channel.on('error', () => undefined);
    const { messageCount: messages, consumerCount: consumers } = await checkQueue(channel, queue);
    await closeQuietly(channel);
    const [first = null] = looksInside && messages > 0 ? await this.list(queue, () => true, 1) : [];
    return { messages, consumers, first };
  }

  /**
   * Sends the chosen messages back to their source queue as they first arrived: same message id, same body,
   * no attempts counted. A message leaves the error queue once the broker has confirmed the copy. A crash in
   * between sends the message twice, and the receiver's inbox applies it once.
   * @throws {MessageReturnedError} if the source queue does not exist; the message stays in the error queue
   */
  async replay({ queue, source }: ErrorQueue, choose: Choice, progress?: Progress): Promise<FailedMessage[]> {
    const outgoing = new PublishChannel(this.bus, await this.connection.createConfirmChannel());
    const send = (delivery: Message): Promise<void> => {
      const options = forwardedProperties(delivery, replayHeaders(delivery));
      const copy = { exchange: '', routingKey: source, content: delivery.content, options };
      return confirmedWithin(CONFIRM_TIMEOUT_MS, copy, outgoing.publish(copy));
    };
    try {
      return await this.visit(queue, choose, { beforeRemoval: send, progress });
    } finally {
      await outgoing.close();
    }
  }

  /** Deletes the chosen messages and returns them. */
  discard(queue: string, choose: Choice, progress?: Progress): Promise<FailedMessage[]> {
    return this.visit(queue, choose, { beforeRemoval: () => Promise.resolve(), progress });
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  /**
   * Reads the messages that are in the queue now and returns the chosen ones. With `beforeRemoval`, removes
   * each chosen message after that call has resolved. Messages that arrive during the visit, such as one
   * whose replay failed, are not visited.
   */
  private async visit(
    queue: string,
    choose: Choice,
    {
      limit = Infinity,
      beforeRemoval,
      progress,
    }: {
      limit?: number;
      beforeRemoval?: (delivery: Message) => Promise<void>;
      progress?: Progress | undefined;
    },
  ): Promise<FailedMessage[]> {
    const chosen: FailedMessage[] = [];
    const channel = await this.connection.createChannel();
    channel.on('error', () => undefined);
    try {
      let { messageCount: remaining } = await checkQueue(channel, queue);
      for (; remaining > 0 && chosen.length < limit; remaining -= 1) {
        const delivery = await channel.get(queue);
        if (delivery === false) break;
        const message = failedMessage(queue, delivery);
        if (!choose(message)) continue;
        await beforeRemoval?.(delivery);
        if (beforeRemoval !== undefined) channel.ack(delivery);
        chosen.push(message);
        progress?.(chosen.length);
      }
    } finally {
      // Unacknowledged messages return to their place in the queue.
      await closeQuietly(channel);
    }
    return chosen;
  }
}

async function connectToAny(url: string, options: object): Promise<ChannelModel> {
  const [first, ...others] = shuffledAddressesOf(url) as [string, ...string[]];
  let connecting = connect(first, options);
  for (const other of others) connecting = connecting.catch(() => connect(other, options));
  return connecting;
}

async function checkQueue(
  channel: Channel,
  queue: string,
): Promise<{ messageCount: number; consumerCount: number }> {
  try {
    return await channel.checkQueue(queue);
  } catch (error) {
    // The broker closes the channel if the queue is missing.
    if ((error as { code?: unknown }).code === 404) return { messageCount: 0, consumerCount: 0 };
    throw error;
  }
}

async function closeQuietly(channel: Channel): Promise<void> {
  await channel.close().catch((error: unknown) => {
    if ((error as Error).name !== 'IllegalOperationError') throw error;
  });
}

/**
 * Headers that the receiver added when the message failed. A replay drops them, so that the message starts
 * afresh.
 */
const OWN_COUNTS = [ATTEMPTS_HEADER, POSTPONEMENTS_HEADER, RESPONSE_TRIES_HEADER, TIMEOUTS_HEADER].join('|');
const FAILURE_HEADER = new RegExp(`^(MT-Fault-.*|MT-Reason|${REASON_HEADER}|${OWN_COUNTS})$`, 's');

function failedMessage(queue: string, delivery: Message): FailedMessage {
  const headers = (delivery.properties.headers ?? {}) as Record<string, unknown>;
  const read = tryReadEnvelope(delivery.content, delivery.properties);
  const envelope = read instanceof Error ? null : read;
  const brokersReason = text(headers['x-first-death-reason'])?.replaceAll('_', '-');
  return {
    id: envelope?.messageId ?? text(delivery.properties.messageId) ?? bodyId(delivery.content),
    queue,
    type: envelope?.messageTypes[0]?.split(':').at(-1) ?? null,
    reason: text(headers[REASON_HEADER]) ?? brokersReason ?? 'unknown',
    errorType: text(headers['MT-Fault-ExceptionType']),
    errorMessage: text(headers['MT-Fault-Message']),
    parkedAt: text(headers['MT-Fault-Timestamp']),
    attempts: attemptsOf(headers),
    body: delivery.content.toString('utf8'),
    headers,
  };
}

/**
 * Returns the headers of a replayed message. They keep the exchange of its first delivery, which identifies a
 * message without an envelope.
 */
function replayHeaders(delivery: Message): Record<string, unknown> {
  const headers = (delivery.properties.headers ?? {}) as Record<string, unknown>;
  const kept = Object.entries(senderHeaders(delivery)).filter(([name]) => !FAILURE_HEADER.test(name));
  const firstExchange = headers[EXCHANGE_HEADER] ?? headers['x-first-death-exchange'];
  return {
    ...Object.fromEntries(kept),
    ...(typeof firstExchange === 'string' ? { [EXCHANGE_HEADER]: firstExchange } : {}),
  };
}

function bodyId(content: Buffer): string {
  return `body-${createHash('sha256').update(content).digest('hex').slice(0, 32)}`;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
