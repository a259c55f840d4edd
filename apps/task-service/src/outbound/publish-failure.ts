import { BusUnavailableError, PublishTimeoutError } from '@platform/messaging';

/** AMQP codes with which a broker closes a channel because of what was asked of it: content too large, access refused, no
 *  such exchange, locked, another exchange of that name. */
const CHANNEL_REFUSALS: ReadonlySet<unknown> = new Set([311, 403, 404, 405, 406]);

/** Tells an outage of the bus, which costs an event nothing, from a refusal of this event, which counts towards parking: an
 *  event that kills its channel every time would otherwise hold up the bus for ever. */
export function isBusOutage(error: unknown): boolean {
  if (error instanceof PublishTimeoutError) return true;
  if (!(error instanceof BusUnavailableError)) return false;
  const cause = error.cause;
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  return !CHANNEL_REFUSALS.has(code);
}
