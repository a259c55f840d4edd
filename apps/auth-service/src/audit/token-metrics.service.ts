import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import { INTROSPECTION } from '../rejections/token-endpoints';
import { REJECTION_STATUS, TOKEN_FLOWS, TokenRejectionReason } from '../rejections/token-rejection';
import type { TokenFlow } from '../rejections/token-rejection';

const INTROSPECTION_REASONS = ['Successful', 'AuthenticationFailed', 'InvalidRequest'] as const;

/** Counts the responses of the token endpoints and of introspection. */
@Injectable()
export class TokenMetrics {
  private readonly responses;
  private readonly withheld;

  constructor(metrics: Metrics) {
    this.responses = metrics.counter('auth_token_answers_total', 'Token responses, outages (503) excluded', [
      'flow',
      'reason',
    ]);
    this.withheld = metrics.counter(
      'auth_refresh_tokens_withheld_total',
      'Access tokens without a refresh token, because the session has enough refresh tokens, has more personas, or is too old',
    );
    // Initialised to 0, because Prometheus cannot compute an increase from a series' first sample.
    for (const flow of TOKEN_FLOWS) {
      for (const reason of reasonsOf(flow)) this.responses.inc({ flow, reason }, 0);
    }
    for (const reason of INTROSPECTION_REASONS) this.responses.inc({ flow: INTROSPECTION, reason }, 0);
  }

  count(flow: TokenFlow | typeof INTROSPECTION, reason: TokenRejectionReason): void {
    this.responses.inc({ flow, reason: TokenRejectionReason[reason] });
  }

  countWithheld(): void {
    this.withheld.inc();
  }
}

function reasonsOf(flow: TokenFlow): string[] {
  const statuses: Readonly<Record<string, unknown>> = REJECTION_STATUS[flow];
  return Object.entries(TokenRejectionReason)
    .filter(([, value]) => value === TokenRejectionReason.Successful || (statuses[value] ?? null) !== null)
    .map(([name]) => name);
}
