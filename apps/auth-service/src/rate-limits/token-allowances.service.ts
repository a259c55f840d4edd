import { Inject, Injectable } from '@nestjs/common';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { HOUR_MS, SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { TokenRateExceeded, rateLimitRefusals } from './rate-limit';

/** Buckets that are remembered; one that is forgotten is full again. */
const MAX_BUCKETS = 100_000;

/** How many times the tokens of one session all sessions of a user together may get by exchanges, and by
 *  refreshes. */
const SESSIONS_AT_ONCE = 10;

/** The user and application that get tokens. */
export interface TokenRecipient {
  subject: string;
  applicationKey: string | null;
}

/** What tokens are taken from. */
interface Bucket {
  name: string;
  perHour: number;
  by: TokenRateExceeded['by'];
}

/** Bounds the tokens that one user gets from one application at this replica: each is a row of the audit
 *  trail, which is kept for more than a year. Whoever holds a token uses up no sign-ins of its user:
 *  exchanges  and refreshes have buckets of their own, by session. After an hour without any, a full hour's
 *  may come at  once. */
@Injectable()
export class TokenAllowances {
  /** When everything that was taken from a bucket will have flowed back, in milliseconds. Those that were
   *  taken from last come last. */
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

  /** Counts a sign-in, whether or not it gets tokens. By application: none of them uses up what the others
   *  need.
   *  @throws {TokenRateExceeded} when the user has had as many as may be had in an hour */
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
    const inAll = perHour * SESSIONS_AT_ONCE;
    this.take([
      { name: nameOf(by, sessionId), perHour, by },
      { name: nameOf(by, subject, applicationKey), perHour: inAll, by },
    ]);
  }

  /** From all of the buckets or, if one is empty, from none. */
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
