import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentitiesService } from '../identity/identities.service';
import { RefusedBuckets } from '../rate-limits/rate-limit';
import { applicationHolder, callerHolder } from './revocation-holders';
import { RevocationQuotaExceeded } from './revocation-refusal';
import type { RevocationQuota } from './revocation-refusal';
import type { RevocationKey } from './revocation';
import { RevocationQuotasRepository } from './revocation-quotas.repository';

/**
 * Retry-After, in seconds, when the limit of stored revocations is reached. A stored revocation expires an
 * hour after its token, or 366 days after it was set.
 */
const FULL_RETRY_SECONDS = 3_600;

/**
 * Limits the revocations that callers who are not administrators set on tokens of others, per minute and in
 * total. Each revocation counts against the caller, under any of the caller's subjects, and against the
 * application, because an application can name any number of callers.
 */
@Injectable()
export class RevocationQuotas {
  /** Holders that have used up their quota for the current minute. Refusing them needs no database query. */
  private readonly exhausted: RefusedBuckets;

  constructor(
    private readonly repository: RevocationQuotasRepository,
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) clock: Clock,
  ) {
    this.exhausted = new RefusedBuckets(clock);
  }

  /**
   * Counts a revocation against the caller and the application. Returns the application; empty if the caller
   * has none.
   * @throws {RevocationQuotaExceeded}
   */
  async take(key: RevocationKey, { subject, clientId, ...caller }: Caller): Promise<string> {
    const application = clientId ?? '';
    const named = callerHolder(subject);
    this.refuseKnown('per-minute', named);
    this.refuseKnown('application-per-minute', applicationHolder(application));
    const subjects = await this.identities.subjectsOf({ ...caller, subject, clientId });
    // The caller is counted first: a caller whose quota is used up takes nothing from the application's.
    await this.takeOne('per-minute', callerHolder(subjects[0]), named);
    await this.takeOne('application-per-minute', applicationHolder(application));
    const { REVOCATIONS_PER_CALLER, REVOCATIONS_PER_APPLICATION } = this.config;
    if (await this.repository.isFull(subjects, REVOCATIONS_PER_CALLER, key))
      throw new RevocationQuotaExceeded('live', FULL_RETRY_SECONDS);
    if (await this.repository.isFullOfApplication(application, REVOCATIONS_PER_APPLICATION, key))
      throw new RevocationQuotaExceeded('application-live', FULL_RETRY_SECONDS);
    return application;
  }

  /**
   * Limits the stored revocations of the caller's own single tokens, because each refresh issues another
   * token. Ending an own session is never limited.
   * @throws {RevocationQuotaExceeded}
   */
  async checkOwn(key: RevocationKey, caller: Caller): Promise<void> {
    const subjects = await this.identities.subjectsOf(caller);
    if (await this.repository.isFullOfOwn(subjects, this.config.REVOCATIONS_OWN_PER_CALLER, key))
      throw new RevocationQuotaExceeded('own-live', FULL_RETRY_SECONDS);
  }

  private refuseKnown(quota: RevocationQuota, holder: string): void {
    const waitSeconds = this.exhausted.waitSeconds(holder);
    if (waitSeconds !== null) throw new RevocationQuotaExceeded(quota, wholeSeconds(waitSeconds));
  }

  /**
   * Takes one revocation from a holder's quota for this minute.
   * @param alias the holder's name by the caller's current subject, which `refuseKnown` checks without a
   * look-up
   */
  private async takeOne(
    quota: 'per-minute' | 'application-per-minute',
    holder: string,
    alias = holder,
  ): Promise<void> {
    const { REVOCATIONS_PER_MINUTE, REVOCATIONS_PER_MINUTE_PER_APPLICATION } = this.config;
    const limit = quota === 'per-minute' ? REVOCATIONS_PER_MINUTE : REVOCATIONS_PER_MINUTE_PER_APPLICATION;
    const waitSeconds = await this.repository.take(holder, limit);
    if (waitSeconds === null) return;
    this.exhausted.remember(alias, waitSeconds);
    throw new RevocationQuotaExceeded(quota, wholeSeconds(waitSeconds));
  }
}

function wholeSeconds(waitSeconds: number): number {
  return Math.max(1, Math.ceil(waitSeconds));
}
