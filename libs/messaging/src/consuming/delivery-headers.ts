import type { ConsumeMessage, Options } from 'amqplib';
import { PUBLISH_ID_HEADER } from '../broker/confirm-publisher';

/** How often a message has waited in the broker for another attempt. */
export const ATTEMPTS_HEADER = 'x-retry-attempts';
/** How often it has waited for the end of an outage since; these waits do not count as attempts. */
export const POSTPONEMENTS_HEADER = 'x-outage-postponements';
/** Exchange that first brought the message; a retry comes through the default exchange. */
export const EXCHANGE_HEADER = 'x-original-exchange';
/** Why a message is in the error or skipped queue. */
export const REASON_HEADER = 'x-error-reason';

/** `unreadable`: not a JSON object; `invalid`: breaks its contract; `unknown-type`: no handler here; `failed`: its handler failed and
 *  the policy has no retry left. */
export const ERROR_REASONS = ['unreadable', 'invalid', 'unknown-type', 'failed'] as const;
export type ErrorReason = (typeof ERROR_REASONS)[number];

/** Written by the broker while dead-lettering; forwarded, they would look like a cycle, and the broker would drop the message. */
const BROKER_HEADER = /^x-(death|first-death|last-death|delivery-count|acquired-count)/;

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

function countIn(headers: Headers | undefined, name: string): number {
  const value = headers?.[name];
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** The exchange that first brought a message, whether or not it has been retried since. */
export function originalExchange(message: ConsumeMessage): string {
  const recorded: unknown = message.properties.headers?.[EXCHANGE_HEADER];
  return typeof recorded === 'string' ? recorded : message.fields.exchange;
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

/** Headers of a message in an error or skipped queue: the sender's, then the reason, in MassTransit's words too. Only type and text
 *  of the error, because a stack helps attackers more than operators. */
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

/** The headers that the sender gave: without those of the broker and of a publish. */
export function senderHeaders(message: Pick<ConsumeMessage, 'properties'>): Record<string, unknown> {
  const headers = (message.properties.headers ?? {}) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !BROKER_HEADER.test(name) && name !== PUBLISH_ID_HEADER),
  );
}
