import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';
import { recordAuthenticationCode } from './record-authentication-code.query';
import { addressNetwork } from '../audit/client-address';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { TokenRateExceeded, perMinute } from './rate-limit';
import { RefusedBuckets } from './refused-buckets';
import { takeAndRecordCode, takeFromBucket } from './take-from-bucket.query';

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

  /** The same for a signed request, whose signature is used up with it: a refused request can be sent again as it is, and a
   *  replayed one costs the application nothing. @returns false when the signature was used before @throws {TokenRateExceeded} */
  async admitSigned(applicationKey: string, code: Buffer): Promise<boolean> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_APPLICATION;
    if (limit === undefined) return recordAuthenticationCode(this.dataSource, applicationKey, code);
    const bucket = `application:${applicationKey}`;
    this.refuseKnown('application', bucket);
    const signature = { applicationKey, code };
    const taken = await takeAndRecordCode(this.dataSource, bucket, perMinute(limit), signature);
    if (typeof taken === 'number') throw this.refuse('application', bucket, taken);
    return taken === 'first';
  }

  private async admit(by: 'address' | 'application', name: string, requestsPerMinute: number): Promise<void> {
    const bucket = `${by}:${name}`;
    this.refuseKnown(by, bucket);
    const waitSeconds = await takeFromBucket(this.dataSource, bucket, perMinute(requestsPerMinute));
    if (waitSeconds !== null) throw this.refuse(by, bucket, waitSeconds);
  }

  private refuseKnown(by: 'address' | 'application', bucket: string): void {
    const waitSeconds = this.refused.waitSeconds(bucket);
    if (waitSeconds === null) return;
    this.refusals.inc({ by });
    throw new TokenRateExceeded(by, wholeSeconds(waitSeconds), true);
  }

  private refuse(by: 'address' | 'application', bucket: string, waitSeconds: number): TokenRateExceeded {
    this.refused.remember(bucket, waitSeconds);
    this.refusals.inc({ by });
    return new TokenRateExceeded(by, wholeSeconds(waitSeconds), false);
  }
}

function wholeSeconds(waitSeconds: number): number {
  return Math.max(1, Math.ceil(waitSeconds));
}
