/** So many requests a minute, as the time each one takes from a bucket (GCRA: the generic cell rate algorithm). A bucket that
 *  has been left alone for a minute admits a full minute's requests at once. */
export interface RateLimit {
  /** What one request costs, in seconds. */
  costSeconds: number;
  /** How far ahead of the present a bucket may be spent, in seconds, for one more request to be admitted. */
  toleranceSeconds: number;
}

const MINUTE_SECONDS = 60;

export function perMinute(requests: number): RateLimit {
  const costSeconds = MINUTE_SECONDS / requests;
  return { costSeconds, toleranceSeconds: MINUTE_SECONDS - costSeconds };
}

/** A caller has asked more often than it may. Answered as 429 with Retry-After. */
export class TokenRateExceeded extends Error {
  override readonly name = 'TokenRateExceeded';

  /** @param isRepeated true when the same bucket was refused moments ago, so that the audit trail need not hold it again */
  constructor(
    readonly by: 'address' | 'application',
    readonly retryAfterSeconds: number,
    readonly isRepeated: boolean,
  ) {
    super(`Too many token requests; try again in ${String(retryAfterSeconds)} s.`);
  }
}
