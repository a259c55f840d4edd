import { MINUTE_MS, SECOND_MS } from '@platform/time';

/** Attempts after which an event is parked for an operator. Source: docs/spec-gaps.md. */
export const PARK_AFTER_ATTEMPTS = 20;

const LONGEST_DELAY_MS = 5 * MINUTE_MS;

/** Wait before the next publish of an event that the broker refused `attempts` times (1 or more): 1 s · 2^(attempts − 1),
 *  at most 5 min; null when it is to be parked. @throws {RangeError} if `attempts` is not a positive integer. */
export function relayDelayMs(attempts: number): number | null {
  if (!Number.isInteger(attempts) || attempts < 1)
    throw new RangeError(`attempts must be 1 or more, got ${String(attempts)}`);
  if (attempts >= PARK_AFTER_ATTEMPTS) return null;
  return Math.min(LONGEST_DELAY_MS, SECOND_MS * 2 ** (attempts - 1));
}
