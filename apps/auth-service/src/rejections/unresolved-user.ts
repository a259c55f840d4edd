import type { Resolution } from '../identity/identity';
import { TokenRejected, TokenRejectionReason } from './token-rejection';

/**
 * Returns the rejection of an unresolved user. Absent, disabled and ambiguous users get the same public
 * detail.
 */
export function notResolved(outcome: Exclude<Resolution['outcome'], 'resolved'>): TokenRejected {
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.', {
    stage: 'resolution',
    privateDetail: outcome,
  });
}
