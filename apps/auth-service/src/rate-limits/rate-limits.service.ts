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

/** Takes one request from a bucket. It returns the seconds to wait where there is nothing to take. */
type Take<T> = (bucket: string, limit: RateLimit) => Promise<T | number>;

/** How many times the limit of one /64 network all networks of a /48 have together. */
const WIDE_NETWORK_FACTOR = 16;

/** The rate limits of the token endpoints, one count for all replicas. */
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

  /** Counts a request of an address, whatever becomes of it. @throws {TokenRateExceeded} */
  async admitAddress(address: string | null): Promise<void> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_ADDRESS;
    if (limit === undefined || address === null) return;
    const { narrow, wide } = addressNetworks(address);
    await this.admit('address', narrow, limit, (...bucket) => this.repository.take(...bucket));
    // Whoever has a /48 has 65,536 networks that are counted on their own.
    if (wide === null) return;
    await this.admit('address', wide, limit * WIDE_NETWORK_FACTOR, (...bucket) =>
      this.repository.take(...bucket),
    );
  }

  /**
   * Counts a request of an application, once it has proved to come from it: naming an application is not
   * enough to use up what it may.
   * @throws {TokenRateExceeded}
   */
  async admitApplication(applicationKey: string): Promise<void> {
    const limit = this.config.TOKEN_RATE_LIMIT_PER_APPLICATION;
    if (limit === undefined) return;
    await this.admit('application', applicationKey, limit, (...bucket) => this.repository.take(...bucket));
  }

  /** The same where the statement that takes the request does something else too.
   *  @param take returns the seconds to wait, or what else it has found
   *  @returns null, and `take` was not called, when applications have no limit
   *  @throws {TokenRateExceeded} */
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

/** Null where none is configured. */
export const RATE_LIMITS: FactoryProvider<RateLimitsService | null> = {
  provide: RateLimitsService,
  inject: [RateLimitsRepository, AUTH_CONFIG, CLOCK, Metrics],
  useFactory: (repository: RateLimitsRepository, config: AuthConfig, clock: Clock, metrics: Metrics) => {
    // Also where it stays empty: an alert on a metric that is missing never comes.
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

/** Lets no address ask more often than it may: before anything about the request is looked up. */
@Injectable()
export class AddressRateGuard implements CanActivate {
  constructor(@Inject(RateLimitsService) private readonly limits: RateLimitsService | null) {}

  canActivate(): boolean | Promise<boolean> {
    return this.limits === null || this.limits.admitAddress(currentAttempt().address).then(() => true);
  }
}
