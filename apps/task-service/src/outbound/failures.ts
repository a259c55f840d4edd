import type { Bus } from '@platform/contracts';
import { BusUnavailableError, PublishTimeoutError } from '@platform/messaging';
import { MINUTE_MS, SECOND_MS } from '@platform/time';

/** Attempts after which an event is parked for an operator. Source: docs/spec-gaps.md. */
export const PARK_AFTER_ATTEMPTS = 20;

const LONGEST_DELAY_MS = 5 * MINUTE_MS;

/** AMQP codes with which a broker closes a channel because of what was asked of it: content too large, access refused, no
 *  such exchange, locked, another exchange of that name. */
const CHANNEL_REFUSALS: ReadonlySet<unknown> = new Set([311, 403, 404, 405, 406]);

/** An outage is nobody's refusal: it costs no event an attempt, and the backlog should drain soon after it. */
const LONGEST_PAUSE_MS = 15 * SECOND_MS;

const BUSES: readonly Bus[] = ['main', 'scheduling'];

/** Wait before the next publish of an event that the broker refused `attempts` times (1 or more): 1 s · 2^(attempts − 1),
 *  at most 5 min; null when it is to be parked. @throws {RangeError} if `attempts` is not a positive integer. */
export function relayDelayMs(attempts: number): number | null {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new RangeError(`attempts must be 1 or more, got ${String(attempts)}`);
  if (attempts >= PARK_AFTER_ATTEMPTS) return null;
  return Math.min(LONGEST_DELAY_MS, SECOND_MS * 2 ** (attempts - 1));
}

/** Tells an outage of the bus, which costs an event nothing, from a refusal of this event, which counts towards parking: an
 *  event that kills its channel every time would otherwise hold up the bus for ever. */
export function isBusOutage(error: unknown): boolean {
  if (error instanceof PublishTimeoutError) return true;
  if (!(error instanceof BusUnavailableError)) return false;
  const cause = error.cause;
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined;
  return !CHANNEL_REFUSALS.has(code);
}

/** Which buses are worth trying. After an outage the relay leaves a bus alone for 1 s · 2ⁿ, at most 15 s. */
export class BusPauses {
  private readonly pauses = new Map<Bus, { untilMs: number; failures: number }>();

  /** Buses not paused at `nowMs`, a monotonic reading. */
  open(nowMs: number): Bus[] {
    return BUSES.filter((bus) => (this.pauses.get(bus)?.untilMs ?? 0) <= nowMs);
  }

  /** Notes an outage and returns how long the bus pauses, in ms. Reports during a pause change nothing. */
  reportOutage(bus: Bus, nowMs: number): number {
    const pause = this.pauses.get(bus) ?? { untilMs: 0, failures: 0 };
    if (pause.untilMs > nowMs) return pause.untilMs - nowMs;
    const delayMs = Math.min(LONGEST_PAUSE_MS, SECOND_MS * 2 ** pause.failures);
    this.pauses.set(bus, { untilMs: nowMs + delayMs, failures: Math.min(pause.failures + 1, 10) });
    return delayMs;
  }

  /** Notes that the bus took a message. */
  reportSuccess(bus: Bus): void {
    this.pauses.delete(bus);
  }
}
