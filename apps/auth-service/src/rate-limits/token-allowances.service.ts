import { Inject, Injectable } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { HOUR_MS, SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { TokenRateExceeded, rateLimitRefusals } from './rate-limit';

/** Maximum buckets in memory. An evicted bucket counts as full again. */
const MAX_BUCKETS = 100_000;

/** Limit of all sessions of a user together, as a multiple of the limit of one session. */
const USER_LIMIT_FACTOR = 10;

/** The user and application that get tokens. */
export interface TokenRecipient {
  subject: string;
  applicationKey: string | null;
}

/** A bucket from which tokens are taken. */
interface Bucket {
  name: string;
  perHour: number;
  by: TokenRateExceeded['by'];
}

/**
 * Limits the tokens that one user gets in one application at this replica, because each token adds a row to
 * the audit trail, which is kept for more than a year. Exchanges and refreshes have separate buckets by
 * session, so that the holder of a token cannot use up the sign-ins of its user. After an hour without
 * requests a bucket admits a full hour's requests at once.
 */
@Injectable()
export class TokenAllowances {
  /** The monotonic time in ms at which each bucket will be full again, least recently used first. */
  private readonly freeAtMs = new Map<string, number>();
  private readonly refusals;

  constructor(
    @Inject(AUTH_CONFIG) private readonly config: Pick<AuthConfig, 'TOKENS_PER_HOUR'>,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.refusals = rateLimitRefusals(metrics);
    for (const by of ['user', 'exchange', 'session']) this.refusals.inc({ by }, 0);
  }

  /**
   * Counts a sign-in, whether or not it gets tokens. Counts are per application, so that one application
   * cannot use up the sign-ins of another.
   * @throws {TokenRateExceeded} when the user has reached the hourly limit
   */
  takeSignIn({ subject, applicationKey }: TokenRecipient): void {
    const { TOKENS_PER_HOUR: perHour } = this.config;
    this.take([{ name: nameOf('sign-in', subject, applicationKey), perHour, by: 'user' }]);
  }

  /** Counts an exchange of an access token. @throws {TokenRateExceeded} */
  takeExchange(sessionId: string, user: TokenRecipient): void {
    this.takeOfSession('exchange', sessionId, user);
  }

  /** Counts a refresh. @throws {TokenRateExceeded} */
  takeRefresh(sessionId: string, user: TokenRecipient): void {
    this.takeOfSession('session', sessionId, user);
  }

  private takeOfSession(
    by: 'exchange' | 'session',
    sessionId: string,
    { subject, applicationKey }: TokenRecipient,
  ): void {
    const { TOKENS_PER_HOUR: perHour } = this.config;
    const allSessionsPerHour = perHour * USER_LIMIT_FACTOR;
    this.take([
      { name: nameOf(by, sessionId), perHour, by },
      { name: nameOf(by, subject, applicationKey), perHour: allSessionsPerHour, by },
    ]);
  }

  /**
   * Takes one token from every bucket, or from none if one is empty.
   * @throws {TokenRateExceeded} when one is empty
   */
  private take(buckets: readonly Bucket[]): void {
    if (this.config.TOKENS_PER_HOUR === 0) return;
    const nowMs = this.clock.monotonicMs();
    const taken = new Map<string, number>();
    for (const { name, perHour, by } of buckets) {
      const freeAtMs = Math.max(this.freeAtMs.get(name) ?? nowMs, nowMs) + HOUR_MS / perHour;
      const waitMs = freeAtMs - nowMs - HOUR_MS;
      if (waitMs > 0) {
        this.refusals.inc({ by });
        throw new TokenRateExceeded(by, Math.ceil(waitMs / SECOND_MS), false);
      }
      taken.set(name, freeAtMs);
    }
    for (const [name, freeAtMs] of taken) {
      this.freeAtMs.delete(name);
      this.freeAtMs.set(name, freeAtMs);
      if (this.freeAtMs.size > MAX_BUCKETS) this.freeAtMs.delete(this.freeAtMs.keys().next().value!);
    }
  }
}

function nameOf(...parts: readonly (string | null)[]): string {
  return JSON.stringify(parts);
}
