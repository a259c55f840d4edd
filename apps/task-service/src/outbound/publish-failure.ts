import {
  BusUnavailableError,
  MessageRefusedError,
  MessageReturnedError,
  PublishTimeoutError,
  isMessageRefusal,
  isRefusal,
} from '@platform/messaging';

const LONGEST_ERROR = 1_000;

/**
 * Reasons for which an event was not accepted, as in metrics and the operator's output.
 * - `queue-refused`: a queue behind the exchange is full or has failed (basic.nack)
 * - `no-queue`: the contract needs a receiver, but no queue is bound
 * - `exchange-refused`: no permission, an exchange of another kind, or no exchange
 * - `unconfirmed`: the bus works, but messages of this type are not confirmed
 * - `invalid`: this one event breaks its contract, is too large, or cannot be encoded
 */
export const REFUSAL_REASONS = [
  'queue-refused',
  'no-queue',
  'exchange-refused',
  'unconfirmed',
  'invalid',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Scope of a failed publish: everything on the bus, all events of the type, or only this event. */
export type PublishFailure =
  | { readonly scope: 'bus' }
  | { readonly scope: 'type'; readonly reason: RefusalReason }
  | { readonly scope: 'event'; readonly reason: RefusalReason };

/**
 * Classifies the error of a publish.
 * @param isBusResponding checks the bus after a timeout: one queue may be down, or the whole bus
 */
export async function publishFailure(
  error: unknown,
  isBusResponding: () => Promise<boolean>,
): Promise<PublishFailure> {
  if (error instanceof PublishTimeoutError)
    return (await isBusResponding()) ? { scope: 'type', reason: 'unconfirmed' } : { scope: 'bus' };
  if (error instanceof MessageRefusedError) return { scope: 'type', reason: 'queue-refused' };
  if (error instanceof MessageReturnedError) return { scope: 'type', reason: 'no-queue' };
  if (error instanceof BusUnavailableError) {
    if (isMessageRefusal(error)) return { scope: 'event', reason: 'invalid' };
    return isRefusal(error) ? { scope: 'type', reason: 'exchange-refused' } : { scope: 'bus' };
  }
  return { scope: 'event', reason: 'invalid' };
}

/**
 * Returns whether a refusal counts as an attempt. An unconfirmed publish does not: the event may have
 * arrived.
 */
export function countsAsAttempt(reason: RefusalReason): boolean {
  return reason !== 'unconfirmed';
}

/** Returns the error as the outbox stores it: one line that PostgreSQL accepts as text. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.slice(0, LONGEST_ERROR).replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ');
}
