import { requireNumber } from './options';

/** Retries after the first attempt. Source: settings spec, Limits. */
export const MAX_RETRIES = 5;
/** No wait is longer, in milliseconds. Source: settings spec, Limits. */
const MAX_WAIT_MS = 5_000;

const FIRST_WAIT_MS = 200;

/** True for a response that another attempt may change: 408, 429, and 5xx except 501 and 505. */
export function isRetryableStatus(status: number): boolean {
  if (status === 408 || status === 429) return true;
  return status >= 500 && status !== 501 && status !== 505;
}

/**
 * Milliseconds to wait before retry `retry` (1 to {@link MAX_RETRIES}): `min(5000, 200 · 2^(retry − 1))` with
 * half jitter, so between half of that and all of it; longer when the service asked for it by Retry-After,
 * but never past {@link MAX_WAIT_MS}.
 *
 * @param random a number from 0 up to but not including 1
 * @param retryAfterMs what Retry-After asked for; null when it did not
 */
export function retryDelayMs(retry: number, random: number, retryAfterMs: number | null): number {
  const backoffMs = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (retry - 1));
  const jitteredMs = backoffMs / 2 + (random * backoffMs) / 2;
  return Math.min(MAX_WAIT_MS, Math.max(jitteredMs, retryAfterMs ?? 0));
}

/**
 * Milliseconds that a Retry-After header asks for: seconds or an HTTP date.
 * @returns null if absent or neither
 */
export function parseRetryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  if (/^\d{1,9}$/.test(header.trim())) return Number(header) * 1_000;
  const dateMs = Date.parse(header);
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - nowMs);
}

/** How many retries a client may spend while the service fails; without it every call has its own five. */
export interface RetryBudgetOptions {
  /** Retries that may be spent before any success. Default 100. */
  readonly capacity?: number;
  /** What one success pays back. Default 0.2: in the long run one retry for five successes. */
  readonly refill?: number;
}

/**
 * Keeps all callers of one client together from multiplying the load on a service that is already failing.
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

  /** Takes one retry; false when there is none left. */
  take(): boolean {
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }

  recordSuccess(): void {
    this.left = Math.min(this.capacity, this.left + this.refill);
  }
}
