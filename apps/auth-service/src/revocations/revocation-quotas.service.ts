import { Inject, Injectable } from '@nestjs/common';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { RefusedBuckets } from '../rate-limits/rate-limit';
import { RevocationQuotaExceeded } from './revocation-refusal';
import type { RevocationKey } from './revocation';
import { RevocationQuotasRepository } from './revocation-quotas.repository';

/** A place becomes free when a revocation expires: an hour after its token, or 366 days after it was set. */
const FULL_RETRY_SECONDS = 3_600;

/** How much callers who are no administrators may revoke of others: so many a minute, and so many at a time. */
@Injectable()
export class RevocationQuotas {
  /** Callers whose minute is used up: a flood of theirs is not counted in the database. */
  private readonly usedUp: RefusedBuckets;

  constructor(
    private readonly repository: RevocationQuotasRepository,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) clock: Clock,
  ) {
    this.usedUp = new RefusedBuckets(clock);
  }

  /** Counts a revocation of the caller's. @throws {RevocationQuotaExceeded} */
  async take(key: RevocationKey, subject: string): Promise<void> {
    const { REVOCATIONS_PER_MINUTE, REVOCATIONS_PER_CALLER } = this.config;
    const knownSeconds = this.usedUp.waitSeconds(subject);
    if (knownSeconds !== null) throw new RevocationQuotaExceeded('per-minute', wholeSeconds(knownSeconds));
    const waitSeconds = await this.repository.take(subject, REVOCATIONS_PER_MINUTE);
    if (waitSeconds !== null) {
      this.usedUp.remember(subject, waitSeconds);
      throw new RevocationQuotaExceeded('per-minute', wholeSeconds(waitSeconds));
    }
    if (await this.repository.isFull(subject, REVOCATIONS_PER_CALLER, key))
      throw new RevocationQuotaExceeded('live', FULL_RETRY_SECONDS);
  }

  /** Bounds the revocations of single tokens of the caller's own: each refresh makes another. Its sessions can always be ended.
   *  @throws {RevocationQuotaExceeded} */
  async checkOwn(key: RevocationKey, subject: string): Promise<void> {
    if (await this.repository.isFullOfOwn(subject, this.config.REVOCATIONS_OWN_PER_CALLER, key))
      throw new RevocationQuotaExceeded('own-live', FULL_RETRY_SECONDS);
  }
}

function wholeSeconds(waitSeconds: number): number {
  return Math.max(1, Math.ceil(waitSeconds));
}
