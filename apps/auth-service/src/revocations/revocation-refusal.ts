/** A revocation that its caller may not set: it is about others, or about a service. */
export class RevocationForbidden extends Error {
  override readonly name = 'RevocationForbidden';

  constructor(readonly reason: 'not-own' | 'service') {
    super(`the caller may not revoke this: ${reason}`);
  }
}

/** The caller has revoked as much of others, or as many tokens of its own, as it may. Answered as 429 with Retry-After. */
export class RevocationQuotaExceeded extends Error {
  override readonly name = 'RevocationQuotaExceeded';

  constructor(
    readonly quota: 'per-minute' | 'live' | 'own-live',
    readonly retryAfterSeconds: number,
  ) {
    super(`the caller's quota of revocations is used up: ${quota}`);
  }
}
