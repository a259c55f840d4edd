import type { ConsumeMessage, Options } from 'amqplib';
import { fitsProperty } from '../envelope/address';
import { boundedHeaders, DROPPED_HEADER } from './sender-headers';

/** Number of times a message has waited in the broker for another attempt. */
export const ATTEMPTS_HEADER = 'x-retry-attempts';
/**
 * Number of times a message was postponed since its last attempt, because of an outage or a busy key.
 * Postponements do not count as attempts.
 */
export const POSTPONEMENTS_HEADER = 'x-outage-postponements';
/**
 * Number of times the handler timed out and the message waited in the broker instead of being retried in the
 * process.
 */
export const TIMEOUTS_HEADER = 'x-statement-timeouts';
/** Number of times the response to a request could not be sent. */
export const RESPONSE_TRIES_HEADER = 'x-response-tries';
/** Exchange of a message's first delivery; a retry arrives through the default exchange. */
export const EXCHANGE_HEADER = 'x-original-exchange';
/** The header that matches a returned message to its publish; MassTransit uses the same one. */
export const PUBLISH_ID_HEADER = 'publishId';
/** Reason why a message is in the error or skipped queue. */
export const REASON_HEADER = 'x-error-reason';

/**
 * Reasons for moving a message to an error or skipped queue:
 * - `unreadable`: not a JSON object in UTF-8, too large or nested too deep
 * - `invalid`: breaks its contract, or its handler finds it unacceptable
 * - `unknown-type`: has no handler at this queue
 * - `failed`: its handler failed and the policy has no retry left
 * - `unanswered`: a request that was carried out, but whose response is refused
 */
export const ERROR_REASONS = ['unreadable', 'invalid', 'unknown-type', 'failed', 'unanswered'] as const;
export type ErrorReason = (typeof ERROR_REASONS)[number];

/**
 * Headers that the broker writes when it dead-letters a message. Forwarded, they would look like a
 * dead-letter cycle, and the broker would drop the message.
 */
const BROKER_HEADER = /^x-(death|first-death|last-death|delivery-count|acquired-count)/;

/**
 * Headers with extra routing keys (`CC`, `BCC`). Forwarded, they would send the message to every queue that
 * its sender named, including the queue it was consumed from, in an endless loop.
 */
const ROUTING_HEADER = /^b?cc$/i;

const MAX_HEADER_TEXT = 1_000;

type Headers = Readonly<Record<string, unknown>>;

/** Returns how often a message has waited in the broker; 0 if the header is missing or invalid. */
export function attemptsOf(headers: Headers | undefined): number {
  return countIn(headers, ATTEMPTS_HEADER);
}

/**
 * Returns how often a message was postponed since its last attempt; 0 if the header is missing or invalid.
 */
export function postponementsOf(headers: Headers | undefined): number {
  return countIn(headers, POSTPONEMENTS_HEADER);
}

/**
 * Returns how often the handler timed out and the message waited in the broker instead of being retried in
 * the process; 0 if the header is missing or invalid.
 */
export function timeoutsOf(headers: Headers | undefined): number {
  return countIn(headers, TIMEOUTS_HEADER);
}

/** Returns how often the response to a request could not be sent; 0 if the header is missing or invalid. */
export function responseTriesOf(headers: Headers | undefined): number {
  return countIn(headers, RESPONSE_TRIES_HEADER);
}

function countIn(headers: Headers | undefined, name: string): number {
  const value = headers?.[name];
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** Returns the exchange of a message's first delivery, even after retries. */
export function originalExchange(message: ConsumeMessage): string {
  const recorded: unknown = message.properties.headers?.[EXCHANGE_HEADER];
  return typeof recorded === 'string' && fitsProperty(recorded) ? recorded : message.fields.exchange;
}

/** Returns the options for publishing the same message again with other headers. */
export function forwardedProperties(
  message: Pick<ConsumeMessage, 'properties'>,
  headers: Headers,
): Options.Publish {
  const { properties } = message;
  const names = [
    'contentType',
    'contentEncoding',
    'correlationId',
    'replyTo',
    'messageId',
    'type',
    'timestamp',
    'appId',
  ] as const;
  const options: Record<string, unknown> = { persistent: true, headers };
  for (const name of names) {
    if (properties[name] !== undefined) options[name] = properties[name];
  }
  return options;
}

/** Returns the headers of a message that is forwarded to a retry queue, with the failure and its time. */
export function retryHeaders(
  message: ConsumeMessage,
  waited: { attempts: number; postponements: number },
  failure: { error: unknown; at: Date },
): Headers {
  return {
    ...senderHeaders(message),
    [ATTEMPTS_HEADER]: waited.attempts,
    [POSTPONEMENTS_HEADER]: waited.postponements,
    [EXCHANGE_HEADER]: originalExchange(message),
    'MT-Fault-Timestamp': failure.at.toISOString(),
    ...faultHeaders(failure.error),
  };
}

/** Returns the headers of a request that was carried out and waits for another try to send its response. */
export function responseRetryHeaders(
  message: ConsumeMessage,
  tries: number,
  failure: { error: unknown; at: Date },
): Headers {
  const { headers } = message.properties;
  const waited = { attempts: attemptsOf(headers), postponements: postponementsOf(headers) };
  return { ...retryHeaders(message, waited, failure), [RESPONSE_TRIES_HEADER]: tries };
}

/**
 * Returns the headers of a message in an error or skipped queue: the sender's, then the reason under our
 * names and MassTransit's. Only the error's type and text are included, because a stack trace helps attackers
 * more than operators.
 */
export function errorHeaders(
  message: ConsumeMessage,
  failure: { reason: ErrorReason; queue: string; attempts: number; error: unknown; at: Date },
): Headers {
  return {
    ...senderHeaders(message),
    [EXCHANGE_HEADER]: originalExchange(message),
    [REASON_HEADER]: failure.reason,
    [ATTEMPTS_HEADER]: failure.attempts,
    'MT-Reason': failure.reason === 'unknown-type' ? 'dead-letter' : 'fault',
    'MT-Fault-Timestamp': failure.at.toISOString(),
    'MT-Fault-InputAddress': `queue:${failure.queue}`,
    'MT-Fault-RetryCount': failure.attempts,
    ...faultHeaders(failure.error),
  };
}

function faultHeaders(error: unknown): Headers {
  if (error === null || error === undefined) return {};
  const { type, message } = describeError(error);
  return { 'MT-Fault-ExceptionType': type, 'MT-Fault-Message': message };
}

/** Returns the type and the text of a thrown value, the text cut to 1,000 characters; never its stack. */
export function describeError(error: unknown): { type: string; message: string } {
  if (!(error instanceof Error))
    return { type: typeof error, message: String(error).slice(0, MAX_HEADER_TEXT) };
  return { type: error.name, message: error.message.slice(0, MAX_HEADER_TEXT) };
}

/**
 * Returns the sender's headers that can be forwarded, without headers of the broker, of routing and of a
 * publish.
 */
export function senderHeaders(message: Pick<ConsumeMessage, 'properties'>): Record<string, unknown> {
  const headers = (message.properties.headers ?? {}) as Record<string, unknown>;
  const isForwarded = (name: string): boolean =>
    !BROKER_HEADER.test(name) && !ROUTING_HEADER.test(name) && name !== PUBLISH_ID_HEADER;
  return boundedHeaders(Object.fromEntries(Object.entries(headers).filter(([name]) => isForwarded(name))));
}

/**
 * Returns the delivery without the sender's headers and properties, except the content type. For a delivery
 * whose headers or properties cannot be encoded again.
 */
export function withoutSenderHeaders(message: ConsumeMessage): ConsumeMessage {
  const { contentType, headers } = message.properties as { contentType: unknown; headers: unknown };
  const own = [
    ATTEMPTS_HEADER,
    POSTPONEMENTS_HEADER,
    TIMEOUTS_HEADER,
    RESPONSE_TRIES_HEADER,
    EXCHANGE_HEADER,
  ];
  const given = (headers ?? {}) as Record<string, unknown>;
  const kept = Object.entries(given).filter(([name]) => own.includes(name));
  const dropped = Object.keys(given).length - kept.length;
  return {
    ...message,
    properties: {
      contentType,
      headers: { ...Object.fromEntries(kept), [DROPPED_HEADER]: dropped },
    } as unknown as ConsumeMessage['properties'],
  };
}
