/**
 * Reason for refusing a token. A closed list that reveals nothing secret, so responses and metrics may
 * contain it.
 */
export type AccessTokenFailure =
  /** There is no `Authorization: Bearer <token>` header. */
  | 'missing'
  /** Longer than 16 KiB. */
  | 'too-large'
  /**
   * Not three parts of canonical base64url, or the header or payload is not a JSON object with unique member
   * names.
   */
  | 'malformed'
  /** The header's `alg`, `kid`, `typ` or `crit` is not supported. */
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

/** A token was refused. The error carries the reason and no part of the token. */
export class AccessTokenError extends Error {
  override readonly name = 'AccessTokenError';

  constructor(
    readonly reason: AccessTokenFailure,
    options?: { cause?: unknown },
  ) {
    super(`access token refused: ${reason}`, options);
  }
}

/** A token cannot be verified because keys or revocations are unavailable: an outage (503), not a refusal. */
export class TokenVerificationUnavailableError extends Error {
  override readonly name = 'TokenVerificationUnavailableError';

  constructor(
    readonly missing: 'keys' | 'revocations',
    options?: { cause?: unknown },
  ) {
    super(`tokens cannot be verified: current ${missing} are out of reach`, options);
  }
}

const SCHEME = /^Bearer +/i;

/**
 * Returns the token of an `Authorization: Bearer <token>` header (RFC 6750 section 2.1), or null. Checks only
 * the shape of the header; `parseToken` checks the characters of the token.
 */
export function bearerToken(authorization: string | undefined): string | null {
  const scheme = authorization === undefined ? null : SCHEME.exec(authorization);
  if (!authorization || !scheme) return null;
  const token = authorization.slice(scheme[0].length);
  return token === '' || token.includes(' ') ? null : token;
}

/** How to refuse a request: the status, a sentence for the caller, and the response headers (RFC 6750). */
export interface AccessRefusal {
  readonly status: 401 | 403 | 503;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Sentences for the caller. All other reasons share one sentence, so that a forger does not learn which check
 * failed.
 */
const SENTENCES: Partial<Record<AccessTokenFailure, string>> = {
  missing: 'A bearer token is required.',
  expired: 'The access token expired.',
  revoked: 'The access token was revoked.',
};

const UNAVAILABLE: AccessRefusal = {
  status: 503,
  detail: 'Access tokens cannot be verified at the moment.',
  headers: { 'Retry-After': '1' },
};

/** The refusal of a valid token with insufficient personas and roles. */
export const FORBIDDEN: AccessRefusal = {
  status: 403,
  detail: 'Your personas and roles do not allow this.',
  headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
};

/**
 * Returns the refusal for a verification error, or null for any other error. A 401 names an error code only
 * if the request had a token.
 */
export function accessRefusal(error: unknown): AccessRefusal | null {
  if (error instanceof TokenVerificationUnavailableError) return UNAVAILABLE;
  if (!(error instanceof AccessTokenError)) return null;
  const detail = SENTENCES[error.reason] ?? 'The access token is not valid.';
  const challenge =
    error.reason === 'missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${detail}"`;
  return { status: 401, detail, headers: { 'WWW-Authenticate': challenge } };
}
