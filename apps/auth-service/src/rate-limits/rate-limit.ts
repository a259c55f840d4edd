import { ContentionError } from '@platform/database';
import type { Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';

/**
 * A limit of requests per minute, as the time that each request takes from a bucket (GCRA, the generic cell
 * rate algorithm). After a minute without requests, a bucket admits a full minute's requests at once.
 */
export interface RateLimit {
  /** Time that one request takes from the bucket, in seconds. */
  costSeconds: number;
  /** Maximum time, in seconds, by which `free_at` may exceed the current time when a request is admitted. */
  toleranceSeconds: number;
}

export const MINUTE_SECONDS = 60;

export function perMinute(requests: number): RateLimit {
  const costSeconds = MINUTE_SECONDS / requests;
  return { costSeconds, toleranceSeconds: MINUTE_SECONDS - costSeconds };
}

/** Thrown when a rate limit is exceeded. The response is 429 with Retry-After. */
export class TokenRateExceeded extends Error {
  override readonly name = 'TokenRateExceeded';

  /**
   * @param isRepeated true if the same bucket was refused shortly before, so that no further audit row is
   * written
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

/**
 * Awaits `issue`, for which a single-use proof (a code or a signature) was consumed. If a rate limit or
 * contention in the database prevented the issue, makes the proof usable again, so that the caller can send
 * the same request later.
 */
export async function giveBackIfRefused<T>(issue: Promise<T>, giveBack: () => Promise<void>): Promise<T> {
  try {
    return await issue;
  } catch (error) {
    if (error instanceof TokenRateExceeded || error instanceof ContentionError) await giveBack();
    throw error;
  }
}

/** Returns the counter of requests refused by a rate limit, labelled by limit. */
export function rateLimitRefusals(metrics: Metrics): ReturnType<Metrics['counter']> {
  return metrics.counter('auth_token_rate_limited_total', 'Token requests refused by a rate limit', ['by']);
}

/**
 * Remembers empty buckets until they can admit a request again. Only time refills a bucket, so a refusal from
 * memory is correct for all replicas, and a flood of requests does not reach the database.
 */
export class RefusedBuckets {
  private readonly untilMs = new Map<string, number>();

  constructor(
    private readonly clock: Clock,
    private readonly capacity = 10_000,
  ) {}

  /** Returns the seconds for which the bucket stays empty; null if it is not known to be empty. */
  waitSeconds(bucket: string): number | null {
    const untilMs = this.untilMs.get(bucket);
    if (untilMs === undefined) return null;
    const waitMs = untilMs - this.clock.monotonicMs();
    if (waitMs > 0) return waitMs / 1_000;
    this.untilMs.delete(bucket);
    return null;
  }

  remember(bucket: string, waitSeconds: number): void {
    // Evicts the oldest entry, which is the most likely to have expired. If it has not, the next request for
    // its bucket costs a query.
    if (this.untilMs.size >= this.capacity) this.untilMs.delete(this.untilMs.keys().next().value!);
    this.untilMs.delete(bucket);
    this.untilMs.set(bucket, this.clock.monotonicMs() + waitSeconds * 1_000);
  }
}
