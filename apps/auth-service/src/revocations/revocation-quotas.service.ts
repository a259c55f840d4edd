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

/** A place becomes free when a revocation expires: an hour after its token, or 366 days after it was set. */
const FULL_RETRY_SECONDS = 3_600;

/**
 * How much callers who are no administrators may revoke of others: so many a minute, and so many at a time.
 * Each counts for the caller, under whichever name the caller comes, and for the application: its callers may
 * be as many as it likes to name.
 */
@Injectable()
export class RevocationQuotas {
  /** Holders whose minute is used up: a flood of theirs is not counted in the database. */
  private readonly usedUp: RefusedBuckets;

  constructor(
    private readonly repository: RevocationQuotasRepository,
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) clock: Clock,
  ) {
    this.usedUp = new RefusedBuckets(clock);
  }

  /**
   * Counts a revocation of the caller's. Returns the application that it counts for.
   * @throws {RevocationQuotaExceeded}
   */
  async take(key: RevocationKey, { subject, clientId, ...caller }: Caller): Promise<string> {
    const application = clientId ?? '';
    const named = callerHolder(subject);
    this.refuseKnown('per-minute', named);
    this.refuseKnown('application-per-minute', applicationHolder(application));
    const subjects = await this.identities.subjectsOf({ ...caller, subject, clientId });
    // The caller first: one who has no more left takes nothing from the application.
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
   * Bounds the revocations of single tokens of the caller's own: each refresh makes another. Its sessions can
   * always be ended.
   * @throws {RevocationQuotaExceeded}
   */
  async checkOwn(key: RevocationKey, caller: Caller): Promise<void> {
    const subjects = await this.identities.subjectsOf(caller);
    if (await this.repository.isFullOfOwn(subjects, this.config.REVOCATIONS_OWN_PER_CALLER, key))
      throw new RevocationQuotaExceeded('own-live', FULL_RETRY_SECONDS);
  }

  private refuseKnown(quota: RevocationQuota, holder: string): void {
    const waitSeconds = this.usedUp.waitSeconds(holder);
    if (waitSeconds !== null) throw new RevocationQuotaExceeded(quota, wholeSeconds(waitSeconds));
  }

  /** @param alias another name of the holder, by which it is known before anything is looked up */
  private async takeOne(
    quota: 'per-minute' | 'application-per-minute',
    holder: string,
    alias = holder,
  ): Promise<void> {
    const { REVOCATIONS_PER_MINUTE, REVOCATIONS_PER_MINUTE_PER_APPLICATION } = this.config;
    const limit = quota === 'per-minute' ? REVOCATIONS_PER_MINUTE : REVOCATIONS_PER_MINUTE_PER_APPLICATION;
    const waitSeconds = await this.repository.take(holder, limit);
    if (waitSeconds === null) return;
    this.usedUp.remember(alias, waitSeconds);
    throw new RevocationQuotaExceeded(quota, wholeSeconds(waitSeconds));
  }
}

function wholeSeconds(waitSeconds: number): number {
  return Math.max(1, Math.ceil(waitSeconds));
}
