import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import type { TokenFlow } from './token-response';
import { REJECTION_STATUS, TOKEN_FLOWS, TokenRejectionReason } from './token-response';

/** Counts the answers of the token endpoints. */
@Injectable()
export class TokenMetrics {
  private readonly answers;

  constructor(metrics: Metrics) {
    this.answers = metrics.counter('auth_token_answers_total', 'Answers of the token endpoints', [
      'flow',
      'reason',
    ]);
    // Prometheus does not see a series' first step: every series is there from the start.
    for (const flow of TOKEN_FLOWS) {
      for (const reason of reasonsOf(flow)) this.answers.inc({ flow, reason }, 0);
    }
  }

  count(flow: TokenFlow, reason: TokenRejectionReason): void {
    this.answers.inc({ flow, reason: TokenRejectionReason[reason] });
  }
}

function reasonsOf(flow: TokenFlow): string[] {
  const statuses: Readonly<Record<string, unknown>> = REJECTION_STATUS[flow];
  return Object.entries(TokenRejectionReason)
    .filter(([, value]) => value === TokenRejectionReason.Successful || (statuses[value] ?? null) !== null)
    .map(([name]) => name);
}
