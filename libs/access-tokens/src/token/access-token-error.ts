/**
 * Why a token was not accepted. Closed: an answer or a metric may name it, and it never says more than the
 * token's sender may know.
 */
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

/**
 * Whether a token is good cannot be known now: keys or revocations are out of reach. An outage (503), never a
 * refusal.
 */
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
 * The token of an `Authorization: Bearer <token>` header (RFC 6750 section 2.1), else null. Only the header's
 * shape is looked at; what a token may consist of is checked when it is parsed.
 */
export function bearerToken(authorization: string | undefined): string | null {
  const scheme = authorization === undefined ? null : SCHEME.exec(authorization);
  if (!authorization || !scheme) return null;
  const token = authorization.slice(scheme[0].length);
  return token === '' || token.includes(' ') ? null : token;
}

/**
 * How a request is refused: status, a sentence that callers may read, and the headers to send along (RFC
 * 6750).
 */
export interface AccessRefusal {
  readonly status: 401 | 403 | 503;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What callers may read. The other reasons share one sentence: which check a forged token failed is nobody's
 * business.
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

/** Of a good token whose personas and roles do not suffice. */
export const FORBIDDEN: AccessRefusal = {
  status: 403,
  detail: 'Your personas and roles do not allow this.',
  headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
};

/**
 * The refusal that responds to a failed verification; null for any other error. A 401 names an error code
 * only when a token was sent.
 */
export function accessRefusal(error: unknown): AccessRefusal | null {
  if (error instanceof TokenVerificationUnavailableError) return UNAVAILABLE;
  if (!(error instanceof AccessTokenError)) return null;
  const detail = SENTENCES[error.reason] ?? 'The access token is not valid.';
  const challenge =
    error.reason === 'missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${detail}"`;
  return { status: 401, detail, headers: { 'WWW-Authenticate': challenge } };
}
