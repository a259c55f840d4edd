/** Why a token was not accepted. Closed: an answer or a metric may name it, and it never says more than the token's sender may know. */
export type AccessTokenFailure =
  /** No token was presented, or not as `Authorization: Bearer <token>`. */
  | 'missing'
  /** Longer than 16 KiB. */
  | 'too-large'
  /** Not three parts of canonical base64url holding JSON objects with distinct member names. */
  | 'malformed'
  /** The header's `alg`, `kid` or `crit` is not one we handle. */
  | 'unsupported-header'
  /** Another kind of token (`typ`), e.g. a refresh token. */
  | 'wrong-type'
  /** `iss` is neither our issuer nor a configured legacy issuer. */
  | 'unknown-issuer'
  /** No current key of this issuer has this `kid` and algorithm. */
  | 'unknown-key'
  | 'bad-signature'
  | 'wrong-audience'
  | 'expired'
  /** `nbf` or `iat` lies in the future. */
  | 'not-yet-valid'
  /** A claim is missing or has the wrong shape. */
  | 'invalid-claims'
  | 'revoked';

/** A token was refused. Carries the reason and nothing of the token. */
export class AccessTokenError extends Error {
  override readonly name = 'AccessTokenError';

  constructor(
    readonly reason: AccessTokenFailure,
    options?: { cause?: unknown },
  ) {
    super(`access token refused: ${reason}`, options);
  }
}

/** Whether a token is good cannot be known now: keys or revocations are out of reach. An outage (503), never a refusal. */
export class TokenVerificationUnavailableError extends Error {
  override readonly name = 'TokenVerificationUnavailableError';

  constructor(
    readonly missing: 'keys' | 'revocations',
    options?: { cause?: unknown },
  ) {
    super(`tokens cannot be verified: current ${missing} are out of reach`, options);
  }
}
