import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';
import { addressNetwork } from '../audit/client-address';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { TokenRateExceeded, perMinute } from './rate-limit';
import { RefusedBuckets } from './refused-buckets';
import { takeFromBucket } from './take-from-bucket.query';

/** The rate limits of the token endpoints, one count for all replicas. Off unless configured. */
@Injectable()
export class TokenRateLimits {
  private readonly refused: RefusedBuckets;
  private readonly refusals;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) clock: Clock,
    metrics: Metrics,
  ) {
    this.refused = new RefusedBuckets(clock);
    this.refusals = metrics.counter(
      'auth_token_rate_limited_total',
      'Token requests refused by a rate limit',
      ['by'],
    );
  }

  /** Counts a request of an address, whatever becomes of it. @throws {TokenRateExceeded} */
  async admitAddress(address: string | null): Promise<void> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_ADDRESS;
    if (limit === undefined || address === null) return;
    await this.admit('address', addressNetwork(address), limit);
  }

  /** Counts a token for an application, once the request has proved to come from it: nobody else can use up what it may.
   *  @throws {TokenRateExceeded} */
  async admitApplication(applicationKey: string | null): Promise<void> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_APPLICATION;
    if (limit === undefined || applicationKey === null) return;
    await this.admit('application', applicationKey, limit);
  }

  private async admit(by: 'address' | 'application', name: string, requestsPerMinute: number): Promise<void> {
    const bucket = `${by}:${name}`;
    const known = this.refused.waitSeconds(bucket);
    const waitSeconds =
      known ?? (await takeFromBucket(this.dataSource, bucket, perMinute(requestsPerMinute)));
    if (waitSeconds === null) return;
    if (known === null) this.refused.remember(bucket, waitSeconds);
    this.refusals.inc({ by });
    throw new TokenRateExceeded(by, Math.max(1, Math.ceil(waitSeconds)), known !== null);
  }
}
