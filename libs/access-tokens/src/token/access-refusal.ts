import { AccessTokenError, TokenVerificationUnavailableError } from './access-token-error';
import type { AccessTokenFailure } from './access-token-error';

const SCHEME = /^Bearer +/i;

/** The token of an `Authorization: Bearer <token>` header (RFC 6750 section 2.1), else null. Only the header's shape is
 *  looked at; what a token may consist of is checked when it is parsed. */
export function bearerToken(authorization: string | undefined): string | null {
  const scheme = authorization === undefined ? null : SCHEME.exec(authorization);
  if (!authorization || !scheme) return null;
  const token = authorization.slice(scheme[0].length);
  return token === '' || token.includes(' ') ? null : token;
}

/** How a request is refused: status, a sentence that callers may read, and the headers to send along (RFC 6750). */
export interface AccessRefusal {
  readonly status: 401 | 403 | 503;
  readonly detail: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What callers may read. The other reasons share one sentence: which check a forged token failed is nobody's business. */
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

/** The refusal that responds to a failed verification; null for any other error. A 401 names an error code only when a token was sent. */
export function accessRefusal(error: unknown): AccessRefusal | null {
  if (error instanceof TokenVerificationUnavailableError) return UNAVAILABLE;
  if (!(error instanceof AccessTokenError)) return null;
  const detail = SENTENCES[error.reason] ?? 'The access token is not valid.';
  const challenge =
    error.reason === 'missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${detail}"`;
  return { status: 401, detail, headers: { 'WWW-Authenticate': challenge } };
}
