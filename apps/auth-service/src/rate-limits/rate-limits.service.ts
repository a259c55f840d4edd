import { Inject, Injectable } from '@nestjs/common';
import type { FactoryProvider, CanActivate } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { addressNetworks } from '../audit/client-address';
import { currentAttempt } from '../audit/token-attempt';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { RefusedBuckets, TokenRateExceeded, perMinute, rateLimitRefusals } from './rate-limit';
import type { RateLimit } from './rate-limit';
import { RateLimitsRepository } from './rate-limits.repository';

/** Takes one request from a bucket. Returns a number, the seconds to wait, if the bucket is empty. */
type Take<T> = (bucket: string, limit: RateLimit) => Promise<T | number>;

/** Limit of a /48 network, as a multiple of the limit of one /64 network. */
const WIDE_NETWORK_FACTOR = 16;

/** The rate limits of the token endpoints. All replicas share the counts. */
export class RateLimitsService {
  private readonly refused: RefusedBuckets;

  constructor(
    private readonly repository: RateLimitsRepository,
    private readonly config: AuthConfig,
    clock: Clock,
    private readonly refusals: ReturnType<Metrics['counter']>,
  ) {
    this.refused = new RefusedBuckets(clock);
  }

  /** Counts a request from an address, regardless of its outcome. @throws {TokenRateExceeded} */
  async admitAddress(address: string | null): Promise<void> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_ADDRESS;
    if (limit === undefined || address === null) return;
    const { narrow, wide } = addressNetworks(address);
    await this.admit('address', narrow, limit, (...bucket) => this.repository.take(...bucket));
    // The /48 network has a limit too, because its owner can use 65,536 separately counted /64 networks.
    if (wide === null) return;
    await this.admit('address', wide, limit * WIDE_NETWORK_FACTOR, (...bucket) =>
      this.repository.take(...bucket),
    );
  }

  /**
   * Counts a request of an application. Call it only after the application is authenticated, so that others
   * cannot use up its limit by naming it.
   * @throws {TokenRateExceeded}
   */
  async admitApplication(applicationKey: string): Promise<void> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_APPLICATION;
    if (limit === undefined) return;
    await this.admit('application', applicationKey, limit, (...bucket) => this.repository.take(...bucket));
  }

  /**
   * Like `admitApplication`, with a statement of the caller's that takes the request from the bucket.
   * @param take returns the seconds to wait if the bucket is empty, otherwise its own result
   * @returns the result of `take`; null without calling it if applications have no limit
   * @throws {TokenRateExceeded}
   */
  async admitApplicationBy<T>(applicationKey: string, take: Take<T>): Promise<T | null> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_APPLICATION;
    return limit === undefined ? null : this.admit('application', applicationKey, limit, take);
  }

  private async admit<T>(
    by: 'address' | 'application',
    name: string,
    requestsPerMinute: number,
    take: Take<T>,
  ): Promise<T> {
    const bucket = `${by}:${name}`;
    this.refuseKnown(by, bucket);
    const taken = await take(bucket, perMinute(requestsPerMinute));
    if (typeof taken === 'number') throw this.refuse(by, bucket, taken);
    return taken;
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

/** Provides the rate limits; null if none is configured. */
export const RATE_LIMITS: FactoryProvider<RateLimitsService | null> = {
  provide: RateLimitsService,
  inject: [RateLimitsRepository, AUTH_CONFIG, CLOCK, Metrics],
  useFactory: (repository: RateLimitsRepository, config: AuthConfig, clock: Clock, metrics: Metrics) => {
    // Created even without limits, because an alert on a missing metric never fires.
    const refusals = rateLimitRefusals(metrics);
    const { TOKEN_RATE_LIMIT_PER_ADDRESS, TOKEN_RATE_LIMIT_PER_APPLICATION } = config;
    const isOff =
      TOKEN_RATE_LIMIT_PER_ADDRESS === undefined && TOKEN_RATE_LIMIT_PER_APPLICATION === undefined;
    return isOff ? null : new RateLimitsService(repository, config, clock, refusals);
  },
};

function wholeSeconds(waitSeconds: number): number {
  return Math.max(1, Math.ceil(waitSeconds));
}

/** Enforces the rate limit per address before the request causes any other database query. */
@Injectable()
export class AddressRateGuard implements CanActivate {
  constructor(@Inject(RateLimitsService) private readonly limits: RateLimitsService | null) {}

  canActivate(): boolean | Promise<boolean> {
    return this.limits === null || this.limits.admitAddress(currentAttempt().address).then(() => true);
  }
}
