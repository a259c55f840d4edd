import { createHash } from 'node:crypto';
import type { Message } from 'amqplib';
import { ATTEMPTS_HEADER, EXCHANGE_HEADER, REASON_HEADER, attemptsOf } from '../consuming/delivery-headers';
import { type ReceivedEnvelope, readEnvelope } from '../envelope/read-envelope';
import { UnreadableMessageError } from '../errors';

/** A message that its receiver put aside, in an error or skipped queue. */
export interface ParkedMessage {
  /** The message's own id; `body-` and a part of the body's SHA-256 when the sender gave none. */
  readonly id: string;
  /** Where it lies, e.g. `orders_error`. */
  readonly queue: string;
  /** The message type that it announces, without namespace; null when it says none. */
  readonly type: string | null;
  /** `failed`, `invalid`, `unreadable`, `unknown-type`; `delivery-limit` and the like when the broker itself gave it up. */
  readonly reason: string;
  readonly errorType: string | null;
  readonly errorMessage: string | null;
  /** ISO 8601; null when unknown. */
  readonly parkedAt: string | null;
  /** Waits in the broker that it had behind it. */
  readonly attempts: number;
  readonly body: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

/** Added by the receiver that parked the message, or by the broker: what is replayed starts afresh without them. */
const PARKING_HEADER =
  /^(MT-Fault-|MT-Reason$|x-(death|first-death|last-death|delivery-count|acquired-count))/;
const FRESH_START: ReadonlySet<string> = new Set([REASON_HEADER, ATTEMPTS_HEADER, 'publishId']);

/** Describes a delivery taken from `queue`. */
export function parkedMessage(queue: string, delivery: Message): ParkedMessage {
  const headers = (delivery.properties.headers ?? {}) as Record<string, unknown>;
  const envelope = findEnvelope(delivery);
  const body = delivery.content.toString('utf8');
  return {
    id: envelope?.messageId ?? text(delivery.properties.messageId) ?? bodyId(delivery.content),
    queue,
    type: envelope?.messageTypes[0]?.split(':').at(-1) ?? null,
    reason: text(headers[REASON_HEADER]) ?? brokersReason(headers) ?? 'unknown',
    errorType: text(headers['MT-Fault-ExceptionType']),
    errorMessage: text(headers['MT-Fault-Message']),
    parkedAt: text(headers['MT-Fault-Timestamp']),
    attempts: attemptsOf(headers),
    body,
    headers,
  };
}

/** The headers with which a parked message starts afresh at its queue. The exchange it first came through stays known: a message
 *  without an envelope is recognised by it. */
export function replayHeaders(delivery: Message): Record<string, unknown> {
  const headers = (delivery.properties.headers ?? {}) as Record<string, unknown>;
  const kept = Object.entries(headers).filter(
    ([name]) => !PARKING_HEADER.test(name) && !FRESH_START.has(name),
  );
  const firstExchange = headers[EXCHANGE_HEADER] ?? headers['x-first-death-exchange'];
  return {
    ...Object.fromEntries(kept),
    ...(typeof firstExchange === 'string' ? { [EXCHANGE_HEADER]: firstExchange } : {}),
  };
}

function findEnvelope({ content, properties }: Message): ReceivedEnvelope | null {
  try {
    return readEnvelope(content, properties);
  } catch (error) {
    if (error instanceof UnreadableMessageError) return null;
    throw error;
  }
}

function brokersReason(headers: Readonly<Record<string, unknown>>): string | null {
  return text(headers['x-first-death-reason'])?.replaceAll('_', '-') ?? null;
}

function bodyId(content: Buffer): string {
  return `body-${createHash('sha256').update(content).digest('hex').slice(0, 32)}`;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
