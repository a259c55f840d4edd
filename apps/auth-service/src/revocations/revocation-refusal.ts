/** Thrown when the caller may not set the revocation, because it concerns another user or a service. */
export class RevocationForbidden extends Error {
  override readonly name = 'RevocationForbidden';

  constructor(readonly reason: 'not-own' | 'service') {
    super(`the caller may not revoke this: ${reason}`);
  }
}

/** The quotas on revocations by callers who are not administrators. */
export const REVOCATION_QUOTAS = [
  'per-minute',
  'live',
  'own-live',
  'application-per-minute',
  'application-live',
] as const;
export type RevocationQuota = (typeof REVOCATION_QUOTAS)[number];

/** Thrown when the caller or its application has used up a quota. The response is 429 with Retry-After. */
export class RevocationQuotaExceeded extends Error {
  override readonly name = 'RevocationQuotaExceeded';

  constructor(
    readonly quota: RevocationQuota,
    readonly retryAfterSeconds: number,
  ) {
    super(`the caller's quota of revocations is used up: ${quota}`);
  }
}
