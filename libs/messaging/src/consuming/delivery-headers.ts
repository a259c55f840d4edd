import type { ConsumeMessage, Options } from 'amqplib';
import { PUBLISH_ID_HEADER } from '../bus/publish-channel';

/** Waits in the broker that a message has behind it. */
export const ATTEMPTS_HEADER = 'x-retry-attempts';
/** Exchange that brought the message first; a retry comes through the default exchange. */
export const EXCHANGE_HEADER = 'x-original-exchange';
/** Why a message is in the error or skipped queue. */
export const REASON_HEADER = 'x-error-reason';

/** `unreadable`: no JSON object; `invalid`: not what its contract says; `unknown-type`: nobody here handles it; `failed`: its
 *  handler failed and the policy has no retry left. */
export const PARK_REASONS = ['unreadable', 'invalid', 'unknown-type', 'failed'] as const;
export type ParkReason = (typeof PARK_REASONS)[number];

/** Written by the broker while dead-lettering; sent on, they would make it believe in a cycle and drop the message. */
const BROKER_HEADER = /^x-(death|first-death|last-death|delivery-count|acquired-count)/;

const MAX_HEADER_TEXT = 1_000;

type Headers = Readonly<Record<string, unknown>>;

/** How often a message has already waited in the broker; 0 when the header is missing or nonsense. */
export function attemptsOf(headers: Headers | undefined): number {
  const value = headers?.[ATTEMPTS_HEADER];
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** The exchange through which a message first came, whether or not it has been retried since. */
export function originalExchange(message: ConsumeMessage): string {
  const recorded: unknown = message.properties.headers?.[EXCHANGE_HEADER];
  return typeof recorded === 'string' ? recorded : message.fields.exchange;
}

/** The properties of `message`, to send the same message on with other headers. */
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

/** Headers of a message that is sent on to be tried again. */
export function retryHeaders(message: ConsumeMessage, attempts: number): Headers {
  return {
    ...senderHeaders(message),
    [ATTEMPTS_HEADER]: attempts,
    [EXCHANGE_HEADER]: originalExchange(message),
  };
}

/** Headers of a message that is put aside: those it came with, then why, in MassTransit's words too. Type and text of the error
 *  only, since stacks tell attackers more than operators. */
export function parkedHeaders(
  message: ConsumeMessage,
  parked: { reason: ParkReason; queue: string; attempts: number; error: unknown; at: Date },
): Headers {
  return {
    ...senderHeaders(message),
    [EXCHANGE_HEADER]: originalExchange(message),
    [REASON_HEADER]: parked.reason,
    [ATTEMPTS_HEADER]: parked.attempts,
    'MT-Reason': parked.reason === 'unknown-type' ? 'dead-letter' : 'fault',
    'MT-Fault-Timestamp': parked.at.toISOString(),
    'MT-Fault-InputAddress': `queue:${parked.queue}`,
    'MT-Fault-RetryCount': parked.attempts,
    ...faultHeaders(parked.error),
  };
}

function faultHeaders(error: unknown): Headers {
  if (error === null || error === undefined) return {};
  const { type, message } = describeError(error);
  return { 'MT-Fault-ExceptionType': type, 'MT-Fault-Message': message };
}

/** Type and bounded text of whatever was thrown; never its stack. */
export function describeError(error: unknown): { type: string; message: string } {
  if (!(error instanceof Error))
    return { type: typeof error, message: String(error).slice(0, MAX_HEADER_TEXT) };
  return { type: error.name, message: error.message.slice(0, MAX_HEADER_TEXT) };
}

function senderHeaders(message: ConsumeMessage): Record<string, unknown> {
  const headers = (message.properties.headers ?? {}) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !BROKER_HEADER.test(name) && name !== PUBLISH_ID_HEADER),
  );
}
