/**
 * Thrown when a revocation set during a sign-in may concern what the sign-in has already checked, e.g. the
 * password. The response is 503 with Retry-After.
 */
export class SignInInterruptedError extends Error {
  override readonly name = 'SignInInterruptedError';

  constructor() {
    super('a revocation interrupted the sign-in');
  }
}

/** The public detail of the response. */
export const SIGN_IN_INTERRUPTED = 'The user was revoked during this sign-in. Try again.';
