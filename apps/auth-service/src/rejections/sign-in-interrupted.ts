/** What a sign-in rests on was revoked while it was under way. Answered as 503 with Retry-After. */
export class SignInInterruptedError extends Error {
  override readonly name = 'SignInInterruptedError';

  constructor() {
    super('revoked while it waited');
  }
}

/** For the caller. */
export const SIGN_IN_INTERRUPTED = 'The user was revoked during this sign-in. Try again.';
