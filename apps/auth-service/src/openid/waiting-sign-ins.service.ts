import { Inject, Injectable } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { SECOND_MS } from '@platform/time';
import { currentNetwork } from '../audit/token-attempt';
import { TooMuchWorkError } from '../bounded-work';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { RefusedBuckets, TokenRateExceeded } from '../rate-limits/rate-limit';
import type { SignInTerms } from './identity-provider.client';
import { SignInsRepository } from './sign-ins.repository';
import type { SignInPurpose } from './sign-ins.repository';

/**
 * Retry-After, in seconds, for a network with too many sign-ins in progress. Slots become free as users sign
 * in.
 */
const RETRY_AFTER_SECONDS = 30;
/** How long, in seconds, a network is remembered as full without asking the database. */
const KNOWN_FULL_SECONDS = 1;

/**
 * Limits the number of waiting sign-ins. Anyone may start one, and each is a row for up to ten minutes. There
 * is no limit per application, because a request can name any application: strangers could use up its slots.
 */
@Injectable()
export class WaitingSignIns {
  private readonly fullNetworks: RefusedBuckets;
  private readonly refusals;
  private known: { waiting: number; countedAtMs: number } | null = null;
  private counting: Promise<{ waiting: number }> | null = null;

  constructor(
    private readonly signIns: SignInsRepository,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.fullNetworks = new RefusedBuckets(clock);
    this.refusals = metrics.counter(
      'auth_sign_ins_refused_total',
      'Single sign-ons refused because too many wait for their users',
      ['reason'],
    );
    for (const reason of ['per-address', 'in-all']) this.refusals.inc({ reason }, 0);
  }

  /**
   * Checks the limits before a sign-in starts.
   * @throws {TokenRateExceeded} when the network's limit is reached
   * @throws {TooMuchWorkError} when the overall limit is reached
   */
  async assertRoom(): Promise<void> {
    if (this.fullNetworks.waitSeconds(currentNetwork()) !== null) throw this.refuseNetwork(true);
    const { waiting } = await this.waitingInAll();
    if (waiting < this.config.OPENID_WAITING_SIGN_INS) return;
    this.refusals.inc({ reason: 'in-all' });
    throw new TooMuchWorkError('too many sign-ins wait for their users');
  }

  /**
   * Stores a sign-in of the current request.
   * @throws {TokenRateExceeded} when the network's limit is reached
   */
  async store(terms: SignInTerms, browserSecret: string, purpose: SignInPurpose): Promise<void> {
    const network = currentNetwork();
    const limit = this.config.OPENID_WAITING_SIGN_INS_PER_ADDRESS;
    const isStored = await this.signIns.store(terms, { browserSecret, network }, purpose, limit);
    if (!isStored) {
      this.fullNetworks.remember(network, KNOWN_FULL_SECONDS);
      throw this.refuseNetwork(false);
    }
    if (this.known !== null) this.known.waiting += 1;
  }

  /**
   * Returns the number of waiting sign-ins on all replicas. Counting takes time in proportion to their
   * number, so the count is cached for 1 s. Sign-ins that this replica starts in that time are added; those
   * of other replicas are not.
   */
  private async waitingInAll(): Promise<{ waiting: number }> {
    const { known } = this;
    if (known !== null && this.clock.monotonicMs() - known.countedAtMs < SECOND_MS) return known;
    // Concurrent requests share one count.
    this.counting ??= this.count().finally(() => {
      this.counting = null;
    });
    return this.counting;
  }

  private async count(): Promise<{ waiting: number }> {
    const waiting = await this.signIns.countWaiting(this.config.OPENID_WAITING_SIGN_INS);
    this.known = { waiting, countedAtMs: this.clock.monotonicMs() };
    return this.known;
  }

  private refuseNetwork(isRepeated: boolean): TokenRateExceeded {
    this.refusals.inc({ reason: 'per-address' });
    return new TokenRateExceeded('waiting sign-ins', RETRY_AFTER_SECONDS, isRepeated);
  }
}
