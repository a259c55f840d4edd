/** A revocation that its caller may not set: it is about others, or about a service. */
export class RevocationForbidden extends Error {
  override readonly name = 'RevocationForbidden';

  constructor(readonly reason: 'not-own' | 'service') {
    super(`the caller may not revoke this: ${reason}`);
  }
}

/** The bounds on what callers who are no administrators revoke. */
export const REVOCATION_QUOTAS = [
  'per-minute',
  'live',
  'own-live',
  'application-per-minute',
  'application-live',
] as const;
export type RevocationQuota = (typeof REVOCATION_QUOTAS)[number];

/**
 * The caller has revoked as much of others, or as many tokens of its own, as it may, or its application has.
 * Answered as 429 with Retry-After.
 */
export class RevocationQuotaExceeded extends Error {
  override readonly name = 'RevocationQuotaExceeded';

  constructor(
    readonly quota: RevocationQuota,
    readonly retryAfterSeconds: number,
  ) {
    super(`the caller's quota of revocations is used up: ${quota}`);
  }
}
