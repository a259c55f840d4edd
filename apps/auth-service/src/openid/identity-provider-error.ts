/** The identity provider cannot be reached, is out of order, or does not know this service as its client. Nothing is said about the
 *  user, so the caller gets an outage. */
export class IdentityProviderUnavailableError extends Error {
  override readonly name = 'IdentityProviderUnavailableError';
}

/** OAuth errors that are about this service, not about the user or the sign-in: its registration with the provider is wrong. */
const CLIENT_ERRORS: ReadonlySet<unknown> = new Set(['invalid_client', 'unauthorized_client']);
/** Codes of the library for responses that are no OAuth responses at all, e.g. a proxy's maintenance page. */
const UNUSABLE_ANSWERS: ReadonlySet<unknown> = new Set([
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_WWW_AUTHENTICATE_CHALLENGE',
]);
const MAX_CAUSES = 5;

/** True when an error of the OpenID library, or what caused it, means that the provider could not do its work; false when the
 *  provider, or the check of its ID token, refused the sign-in. */
export function isProviderUnavailable(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < MAX_CAUSES && current instanceof Error; depth += 1) {
    if (current instanceof IdentityProviderUnavailableError) return true;
    const { code, error: oauthError } = current as { code?: unknown; error?: unknown };
    if (UNUSABLE_ANSWERS.has(code)) return true;
    // In a callback this error comes from the browser's form and proves nothing.
    if (code === 'OAUTH_RESPONSE_BODY_ERROR' && CLIENT_ERRORS.has(oauthError)) return true;
    current = current.cause;
  }
  return false;
}

/** What may be logged of an error of the OpenID library: its kind. Its causes hold codes, tokens and claims, and the `error` of a
 *  callback is whatever a browser sent, so only what looks like an OAuth error code is shown. */
export function describeProviderError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const { code, error: oauthError } = error as { code?: unknown; error?: unknown };
  const kind = typeof oauthError === 'string' && /^[a-z_]{1,50}$/.test(oauthError) ? oauthError : undefined;
  return [error.message, code, kind].filter((part) => typeof part === 'string').join(', ');
}
