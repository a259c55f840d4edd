import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import type { TokenFlow } from './rejection';
import { TokenRejectionReason } from './rejection';

/** Counts the answers of the token endpoints. */
@Injectable()
export class TokenMetrics {
  private readonly answers;

  constructor(metrics: Metrics) {
    this.answers = metrics.counter('auth_token_answers_total', 'Answers of the token endpoints', [
      'flow',
      'reason',
    ]);
  }

  count(flow: TokenFlow, reason: TokenRejectionReason): void {
    this.answers.inc({ flow, reason: TokenRejectionReason[reason] });
  }
}
