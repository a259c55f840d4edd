import { REJECTION_STATUS, TokenRejected, TokenRejectionReason, rejectionStatus } from './token-rejection';
import type { Rejection, TokenFlow } from './token-rejection';

describe('the reason → status table', () => {
  it.each<[TokenFlow, Rejection, number]>([
    ['refresh', TokenRejectionReason.InvalidRequest, 400],
    ['refresh', TokenRejectionReason.AuthenticationFailed, 401],
    ['refresh', TokenRejectionReason.RefreshThresholdExceeded, 422],
    ['refresh', TokenRejectionReason.UnsupportedRefreshIdentity, 422],
    ['refresh', TokenRejectionReason.RefreshTokenIsNotValid, 401],
    ['refresh', TokenRejectionReason.TokenRevoked, 401],
    ['refresh', TokenRejectionReason.InvalidGrant, 422],
    ['password', TokenRejectionReason.InvalidRequest, 400],
    ['password', TokenRejectionReason.AuthenticationFailed, 401],
    ['password', TokenRejectionReason.InvalidGrant, 422],
    ['trust', TokenRejectionReason.InvalidRequest, 400],
    ['trust', TokenRejectionReason.InvalidGrant, 422],
    ['trust-simple', TokenRejectionReason.InvalidRequest, 400],
    ['trust-simple', TokenRejectionReason.InvalidGrant, 422],
    ['bearer', TokenRejectionReason.InvalidRequest, 401],
    ['bearer', TokenRejectionReason.AuthenticationFailed, 401],
    ['bearer', TokenRejectionReason.AccessTokenIsNotValid, 401],
    ['bearer', TokenRejectionReason.TokenRevoked, 401],
    ['bearer', TokenRejectionReason.InvalidGrant, 401],
    ['windows', TokenRejectionReason.InvalidRequest, 400],
    ['windows', TokenRejectionReason.AuthenticationFailed, 401],
    ['windows', TokenRejectionReason.InvalidGrant, 401],
  ])('%s, reason %i is %i', (flow, reason, status) => {
    expect(rejectionStatus(flow, reason, 'proof')).toBe(status);
    expect(rejectionStatus(flow, reason, 'resolution')).toBe(status);
  });

  it.each<TokenFlow>(['trust', 'trust-simple'])(
    'has different statuses for a wrong proof and an unknown user in %s',
    (flow) => {
      expect(rejectionStatus(flow, TokenRejectionReason.AuthenticationFailed, 'proof')).toBe(401);
      expect(rejectionStatus(flow, TokenRejectionReason.AuthenticationFailed, 'resolution')).toBe(422);
    },
  );

  it('treats a failure without a stage as a failed proof', () => {
    expect(rejectionStatus('trust', TokenRejectionReason.AuthenticationFailed, null)).toBe(401);
    expect(rejectionStatus('password', TokenRejectionReason.AuthenticationFailed, null)).toBe(401);
  });

  it('has no stage unless the rejection is created with one', () => {
    const wrongPassword = new TokenRejected(
      TokenRejectionReason.AuthenticationFailed,
      'Authentication failed.',
    );
    expect(wrongPassword.stage).toBeNull();
  });

  it('has every reason in every flow', () => {
    for (const row of Object.values(REJECTION_STATUS)) {
      expect(Object.keys(row).map(Number)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    }
  });

  it('throws a RangeError for a reason that the flow never uses', () => {
    expect(() => rejectionStatus('trust', TokenRejectionReason.TokenRevoked, 'proof')).toThrow(RangeError);
  });
});
