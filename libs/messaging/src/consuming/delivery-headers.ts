import type { ConsumeMessage, Options } from 'amqplib';
import { PUBLISH_ID_HEADER } from '../broker/confirm-publisher';
import { fitsProperty } from '../envelope/address';
import { boundedHeaders, DROPPED_HEADER } from './sender-headers';

/** How often a message has waited in the broker for another attempt. */
export const ATTEMPTS_HEADER = 'x-retry-attempts';
/** How often it has waited for the end of an outage since; these waits do not count as attempts. */
export const POSTPONEMENTS_HEADER = 'x-outage-postponements';
/** How often it timed out in place of the retries inside the process. */
export const TIMEOUTS_HEADER = 'x-statement-timeouts';
/** How often its response could not be sent. */
export const RESPONSE_TRIES_HEADER = 'x-response-tries';
/** Exchange that first brought the message; a retry comes through the default exchange. */
export const EXCHANGE_HEADER = 'x-original-exchange';
/** Why a message is in the error or skipped queue. */
export const REASON_HEADER = 'x-error-reason';

/**
 * `unreadable`: not a JSON object in UTF-8, too large or too deeply nested; `invalid`: breaks its contract;
 * `unknown-type`: no handler here; `failed`: its handler failed and the policy has no retry left;
 * `unanswered`: it was carried out, but its response is refused.
 */
export const ERROR_REASONS = ['unreadable', 'invalid', 'unknown-type', 'failed', 'unanswered'] as const;
export type ErrorReason = (typeof ERROR_REASONS)[number];

/**
 * Written by the broker while dead-lettering; forwarded, they would look like a cycle, and the broker would
 * drop the message.
 */
const BROKER_HEADER = /^x-(death|first-death|last-death|delivery-count|acquired-count)/;

/**
 * Further routing keys of a publish. Forwarded, they would bring the message to every queue that its sender
 * names, and again to the queue that it is taken from, for ever.
 */
const ROUTING_HEADER = /^b?cc$/i;

const MAX_HEADER_TEXT = 1_000;

type Headers = Readonly<Record<string, unknown>>;

/** How often a message has already waited in the broker; 0 when the header is missing or invalid. */
export function attemptsOf(headers: Headers | undefined): number {
  return countIn(headers, ATTEMPTS_HEADER);
}

/** How often a message was postponed since its last attempt; 0 when the header is missing or invalid. */
export function postponementsOf(headers: Headers | undefined): number {
  return countIn(headers, POSTPONEMENTS_HEADER);
}

/** How often a message waited in the broker in place of a retry inside the process. */
export function timeoutsOf(headers: Headers | undefined): number {
  return countIn(headers, TIMEOUTS_HEADER);
}

/** How often the response of a request could not be sent; 0 when the header is missing or invalid. */
export function responseTriesOf(headers: Headers | undefined): number {
  return countIn(headers, RESPONSE_TRIES_HEADER);
}

function countIn(headers: Headers | undefined, name: string): number {
  const value = headers?.[name];
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** The exchange that first brought a message, whether or not it has been retried since. */
export function originalExchange(message: ConsumeMessage): string {
  const recorded: unknown = message.properties.headers?.[EXCHANGE_HEADER];
  return typeof recorded === 'string' && fitsProperty(recorded) ? recorded : message.fields.exchange;
}

/** The properties with which the same message is forwarded under other headers. */
export function forwardedProperties(
  message: Pick<ConsumeMessage, 'properties'>,
  headers: Headers,
): Options.Publish {
  const { properties } = message;
  const kept = [
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
  for (const name of kept) {
    if (properties[name] !== undefined) options[name] = properties[name];
  }
  return options;
}

/** Headers of a message that is forwarded to a retry queue; they say why, and since when it waits. */
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

/** Headers of a request that was carried out and waits for another try to send its response. */
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
 * Headers of a message in an error or skipped queue: the sender's, then the reason, in MassTransit's words
 * too. Only type and text of the error, because a stack helps attackers more than operators.
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

/** Type and bounded text of a thrown value; never its stack. */
export function describeError(error: unknown): { type: string; message: string } {
  if (!(error instanceof Error))
    return { type: typeof error, message: String(error).slice(0, MAX_HEADER_TEXT) };
  return { type: error.name, message: error.message.slice(0, MAX_HEADER_TEXT) };
}

/**
 * The headers that the sender gave, as far as they can be forwarded: without those of the broker, of routing
 * and of a publish.
 */
export function senderHeaders(message: Pick<ConsumeMessage, 'properties'>): Record<string, unknown> {
  const headers = (message.properties.headers ?? {}) as Record<string, unknown>;
  const isKept = (name: string): boolean =>
    !BROKER_HEADER.test(name) && !ROUTING_HEADER.test(name) && name !== PUBLISH_ID_HEADER;
  return boundedHeaders(Object.fromEntries(Object.entries(headers).filter(([name]) => isKept(name))));
}

/**
 * The same delivery as if its sender had given it nothing but a body, for one whose headers or properties
 * cannot be encoded again.
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
