import type { Rejection } from '../token-endpoints/rejection';
import { TokenRejectionReason } from '../token-endpoints/rejection';

/** What every token endpoint answers. Source: authentication spec, TokenResponse. */
export interface TokenResponse {
  accessToken: string | null;
  refreshToken: string | null;
  rejectionReason: TokenRejectionReason;
  rejectionDetails: string | null;
  wasSuccessful: boolean;
}

/** The answer that carries tokens. Only TokenIssuer calls this. */
export function successfulTokenResponse(accessToken: string, refreshToken: string | null): TokenResponse {
  return {
    accessToken,
    refreshToken,
    rejectionReason: TokenRejectionReason.Successful,
    rejectionDetails: null,
    wasSuccessful: true,
  };
}

/** The answer that says why there are no tokens. `details` is public. */
export function rejectedTokenResponse(reason: Rejection, details: string): TokenResponse {
  return {
    accessToken: null,
    refreshToken: null,
    rejectionReason: reason,
    rejectionDetails: details,
    wasSuccessful: false,
  };
}
