import { ContentionError } from '@platform/database';
import type { Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';

/**
 * So many requests a minute, as the time each one takes from a bucket (GCRA: the generic cell rate
 * algorithm). A bucket that has been left alone for a minute admits a full minute's requests at once.
 */
export interface RateLimit {
  /** What one request costs, in seconds. */
  costSeconds: number;
  /** How far ahead of the present a bucket may be spent, in seconds, for one more request to be admitted. */
  toleranceSeconds: number;
}

export const MINUTE_SECONDS = 60;

export function perMinute(requests: number): RateLimit {
  const costSeconds = MINUTE_SECONDS / requests;
  return { costSeconds, toleranceSeconds: MINUTE_SECONDS - costSeconds };
}

/** A caller has asked more often than it may. Answered as 429 with Retry-After. */
export class TokenRateExceeded extends Error {
  override readonly name = 'TokenRateExceeded';

  /**
   * @param isRepeated true when the same bucket was refused moments ago, so that the audit trail need not
   * hold it again
   */
  constructor(
    readonly by: 'address' | 'application' | 'waiting sign-ins' | 'session' | 'exchange' | 'user',
    readonly retryAfterSeconds: number,
    readonly isRepeated: boolean,
  ) {
    super(`Too many ${TOO_MANY[by]}; try again in ${String(retryAfterSeconds)} s.`);
  }
}

const TOO_MANY = {
  address: 'token requests',
  application: 'token requests',
  session: 'refreshes of this session or user',
  exchange: 'exchanges of this session or user',
  user: 'sign-ins of this user',
  'waiting sign-ins': 'sign-ins under way',
} as const;

/** The result of `issue`, for which a proof that works once was used up. If a limit refuses it, or the
 *  database had
 *  no turn for it, the proof is given back first: the caller sends the same request later. */
export async function orGiveBack<T>(issue: Promise<T>, giveBack: () => Promise<void>): Promise<T> {
  try {
    return await issue;
  } catch (error) {
    if (error instanceof TokenRateExceeded || error instanceof ContentionError) await giveBack();
    throw error;
  }
}

/** Counts the refusals of every limit on token requests, by limit. */
export function rateLimitRefusals(metrics: Metrics): ReturnType<Metrics['counter']> {
  return metrics.counter('auth_token_rate_limited_total', 'Token requests refused by a rate limit', ['by']);
}

/**
 * Buckets known to be empty for a while yet. Nothing refills a bucket but time, so no other replica needs to
 * be asked, and a flood of requests costs the database nothing.
 */
export class RefusedBuckets {
  private readonly untilMs = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly capacity = 10_000,
  ) {}

  /** Seconds for which the bucket stays empty; null when that is not known. */
  waitSeconds(bucket: string): number | null {
    const untilMs = this.untilMs.get(bucket);
    if (untilMs === undefined) return null;
    const waitMs = untilMs - this.clock.monotonicMs();
    if (waitMs > 0) return waitMs / 1_000;
    this.untilMs.delete(bucket);
    return null;
  }

  remember(bucket: string, waitSeconds: number): void {
    // The oldest go first: they are the likeliest to be over, and forgetting one costs a question, no more.
    if (this.untilMs.size >= this.capacity) this.untilMs.delete(this.untilMs.keys().next().value!);
    this.untilMs.delete(bucket);
    this.untilMs.set(bucket, this.clock.monotonicMs() + waitSeconds * 1_000);
  }
}
