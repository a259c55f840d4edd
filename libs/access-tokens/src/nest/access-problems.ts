import { ProblemException, problems } from '@platform/service-defaults';
import { AccessTokenError, TokenVerificationUnavailableError } from '../token/access-token-error';
import type { AccessTokenFailure } from '../token/access-token-error';

const RETRY_AFTER_SECONDS = 1;

/** What callers may read. Most reasons share one sentence: which check a forged token failed is nobody's business. */
function sentence(reason: AccessTokenFailure): string {
  switch (reason) {
    case 'missing':
      return 'A bearer token is required.';
    case 'expired':
      return 'The access token expired.';
    case 'revoked':
      return 'The access token was revoked.';
    case 'too-large':
    case 'malformed':
    case 'unsupported-header':
    case 'wrong-type':
    case 'unknown-issuer':
    case 'unknown-key':
    case 'bad-signature':
    case 'wrong-audience':
    case 'not-yet-valid':
    case 'invalid-claims':
      return 'The access token is not valid.';
  }
}

/** 401 with the challenge of RFC 6750: an error code only when a token was sent. */
function unauthorizedProblem(error: AccessTokenError): ProblemException {
  const detail = sentence(error.reason);
  const challenge =
    error.reason === 'missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${detail}"`;
  return new ProblemException({
    status: 401,
    detail,
    headers: { 'WWW-Authenticate': challenge },
    cause: error,
  });
}

/** 403 with the challenge of RFC 6750. */
export function forbiddenProblem(): ProblemException {
  return new ProblemException({
    status: 403,
    detail: 'Your personas and roles do not allow this.',
    headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
  });
}

/** The problem that answers a failed verification; any other error is returned as it is. */
export function accessProblem(error: unknown): unknown {
  if (error instanceof AccessTokenError) return unauthorizedProblem(error);
  if (error instanceof TokenVerificationUnavailableError) {
    return problems.serviceUnavailable(
      'Access tokens cannot be verified at the moment.',
      RETRY_AFTER_SECONDS,
    );
  }
  return error;
}
