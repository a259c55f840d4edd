import { Inject, Injectable } from '@nestjs/common';
import { CLOCK, HealthRegistry, Metrics, ProblemException } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import type { RevocationFeed } from '../revocations/revocation-feed';
import { accessRefusal } from '../token/access-token-error';
import type { AccessRefusal, AccessTokenFailure } from '../token/access-token-error';
import { AccessTokenHost } from './access-token-host';
import type { ResponseHeaders } from './access-token-host';

/** Returns the problem for a failed verification; any other error is returned unchanged. */
export function accessProblem(error: unknown): unknown {
  const refusal = accessRefusal(error);
  return refusal === null ? error : new ProblemException({ ...refusal, cause: error });
}

/**
 * Host for the platform's own services: refusals are problem details, and a stale revocation feed makes the
 * service not ready.
 */
@Injectable()
export class ServiceAccessTokenHost extends AccessTokenHost {
  private readonly refusals: Counter<'reason'>;

  constructor(
    @Inject(CLOCK) override readonly clock: Clock,
    private readonly health: HealthRegistry,
    private readonly metrics: Metrics,
  ) {
    super();
    this.refusals = metrics.counter(
      'access_token_refusals_total',
      'Requests refused for their access token, by reason (unavailable: it could not be verified).',
      ['reason'],
    );
  }

  override refuse(refusal: AccessRefusal, _response: ResponseHeaders, cause?: unknown): Error {
    return new ProblemException({ ...refusal, cause });
  }

  override refused(reason: AccessTokenFailure | 'unavailable'): void {
    this.refusals.inc({ reason });
  }

  override watch(revocations: RevocationFeed): void {
    this.metrics.sampledGauge(
      'revocation_feed_age_seconds',
      'Time since the last complete read of the revocations; tokens are refused when it is too old',
      [],
      () => [{ labels: {}, value: revocations.ageMs / SECOND_MS }],
    );
    this.metrics.sampledGauge('revocation_feed_entries', 'Revocations known', [], () => [
      { labels: {}, value: revocations.size },
    ]);
    this.metrics.sampledGauge(
      'revocation_feed_overflow_entries',
      'Revocations held only approximately because the exact index is full: above 0, some valid tokens are refused',
      [],
      () => [{ labels: {}, value: revocations.overflowSize }],
    );
    // eslint-disable-next-line @typescript-eslint/require-await -- async turns a throw into a rejection
    this.health.addReadinessCheck({ name: 'revocations', check: async () => revocations.assertFresh() });
  }
}
