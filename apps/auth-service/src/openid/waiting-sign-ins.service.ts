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

/** When somebody whose address has too many sign-ins under way is to try again: places become free as
 *  users sign in. */
const RETRY_AFTER_SECONDS = 30;
/** How long a network is known to be full without asking the database. */
const KNOWN_FULL_SECONDS = 1;

/** Bounds how many sign-ins wait for their users: anybody may begin one, and each is a row for up to ten
 *  minutes. There is no bound for an application, because whoever names one need not be it: strangers
 *  could use up its places. */
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
      'Single sign-ons that were not begun because too many wait for their users',
      ['reason'],
    );
    for (const reason of ['per-address', 'in-all']) this.refusals.inc({ reason }, 0);
  }

  /** Refuses what need not be begun.
   *  @throws {TokenRateExceeded} when as many sign-ins of the address wait as may
   *  @throws {TooMuchWorkError} when as many wait in all */
  async assertRoom(): Promise<void> {
    if (this.fullNetworks.waitSeconds(currentNetwork()) !== null) throw this.refuseNetwork(true);
    const { waiting } = await this.waitingInAll();
    if (waiting < this.config.OPENID_WAITING_SIGN_INS) return;
    this.refusals.inc({ reason: 'in-all' });
    throw new TooMuchWorkError('too many sign-ins wait for their users');
  }

  /** Stores a sign-in of the current request. @throws {TokenRateExceeded} as `assertRoom` */
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

  /** How many wait on all replicas. Counting costs by their number, so it is done once a second at most;
   *  what this replica begins meanwhile is added, what others begin is not. */
  private async waitingInAll(): Promise<{ waiting: number }> {
    const { known } = this;
    if (known !== null && this.clock.monotonicMs() - known.countedAtMs < SECOND_MS) return known;
    // Requests that come meanwhile share one count.
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
