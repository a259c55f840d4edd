import {
  BusUnavailableError,
  MessageRefusedError,
  MessageReturnedError,
  PublishTimeoutError,
  isMessageRefusal,
  isRefusal,
} from '@platform/messaging';

const LONGEST_ERROR = 1_000;

/** Why an event was not taken, as metrics and operators name it.
 *  - `queue-refused`: a queue behind the exchange is full or has failed (basic.nack)
 *  - `no-queue`: the contract needs a receiver and there is none
 *  - `exchange-refused`: no permission, another kind of exchange, or none
 *  - `unconfirmed`: the bus works, but this type's messages are not confirmed
 *  - `invalid`: this one event breaks its contract, is too large, or cannot be encoded */
export const REFUSAL_REASONS = [
  'queue-refused',
  'no-queue',
  'exchange-refused',
  'unconfirmed',
  'invalid',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Whom a failed publish concerns: everything on the bus, all events of the type, or this event alone. */
export type PublishFailure =
  | { readonly scope: 'bus' }
  | { readonly scope: 'type'; readonly reason: RefusalReason }
  | { readonly scope: 'event'; readonly reason: RefusalReason };

/** @param isBusResponding asked when the broker stayed silent: one queue may be away, or the whole bus */
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
 * Whether a refusal counts as an attempt. An unconfirmed event may have arrived, and nobody said no to it.
 */
export function countsAsAttempt(reason: RefusalReason): boolean {
  return reason !== 'unconfirmed';
}

/** The error as the outbox stores it: one line that PostgreSQL takes as text. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.slice(0, LONGEST_ERROR).replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ');
}
