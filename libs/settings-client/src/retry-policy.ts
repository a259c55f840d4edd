import { requireNumber } from './options';

/** Maximum number of retries after the first attempt. Source: settings spec, Limits. */
export const MAX_RETRIES = 5;
/** Maximum delay before a retry, in milliseconds. Source: settings spec, Limits. */
const MAX_WAIT_MS = 5_000;

const FIRST_WAIT_MS = 200;

/** Returns true for a status that a retry may change: 408, 429, and 5xx except 501 and 505. */
export function isRetryableStatus(status: number): boolean {
  if (status === 408 || status === 429) return true;
  return status >= 500 && status !== 501 && status !== 505;
}

/**
 * Returns the delay before retry `retry` (1 to {@link MAX_RETRIES}), in milliseconds: a random value between
 * half of and all of `min(5000, 200 · 2^(retry − 1))`. A longer Retry-After extends it, but never beyond
 * {@link MAX_WAIT_MS}.
 *
 * @param random a number from 0 (inclusive) to 1 (exclusive)
 * @param retryAfterMs delay requested by Retry-After; null if there was none
 */
export function retryDelayMs(retry: number, random: number, retryAfterMs: number | null): number {
  const backoffMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (retry - 1));
  const jitteredMs = backoffMs / 2 + (random * backoffMs) / 2;
  return Math.min(MAX_WAIT_MS, Math.max(jitteredMs, retryAfterMs ?? 0));
}

/**
 * Returns the delay that a Retry-After header requests, in milliseconds. The header holds seconds or an HTTP
 * date.
 * @returns null if the header is absent or invalid
 */
export function parseRetryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1_000;
  const dateMs = Date.parse(header);
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs);
}

/** Limits the retries of all calls of a client together. Without it each call may retry five times. */
export interface RetryBudgetOptions {
  /** Retries available at the start, and the maximum. Default 100. */
  readonly capacity?: number;
  /** Retries that one success adds. Default 0.2: in the long run one retry per five successes. */
  readonly refill?: number;
}

/**
 * The retries that all callers of one client share, so that together they add little load to a failing
 * service. A retry takes one; a success adds `refill`.
 */
export class RetryBudget {
  private readonly capacity: number;
  private readonly refill: number;
  private left: number;

  constructor({ capacity = 100, refill = 0.2 }: RetryBudgetOptions = {}) {
    this.capacity = requireNumber('retryBudget.capacity', capacity, { min: 0 });
    this.refill = requireNumber('retryBudget.refill', refill, { min: 0 });
    this.left = capacity;
  }

  /** Takes one retry. Returns false if none is left. */
  take(): boolean {
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }

  recordSuccess(): void {
    this.left = Math.min(this.capacity, this.left + this.refill);
  }
}
