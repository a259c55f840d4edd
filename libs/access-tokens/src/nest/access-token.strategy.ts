import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-jwt';
import type { SecretOrKeyProvider } from 'passport-jwt';
import { bearerToken, AccessTokenError } from '../token/access-token-error';
import type { Caller } from '../token/caller';
import { SIGNING_ALGORITHMS } from '../token/parse-token';
import { SIGNATURE_ONLY } from '../verification/access-token-verifier';
import type { AccessTokenVerifier, PreparedToken } from '../verification/access-token-verifier';
import type { AuthenticatedRequest } from './access-rules';

export const ACCESS_TOKEN_STRATEGY = 'access-token';

interface Verification {
  readonly verifier: AccessTokenVerifier;
  prepared?: PreparedToken;
}

/**
 * The verifier to use for each request. Passport registers strategies per process, and several applications
 * may run in one process (in tests), so the strategy itself must hold no application state.
 */
const verifications = new WeakMap<AuthenticatedRequest, Verification>();

/** Registers the verifier for a request. Call it before the strategy runs. */
export function beginVerification(request: AuthenticatedRequest, verifier: AccessTokenVerifier): void {
  verifications.set(request, { verifier });
}

function verificationOf(request: AuthenticatedRequest): Verification {
  const verification = verifications.get(request);
  if (!verification) throw new Error('the access-token strategy runs only behind AccessTokenGuard');
  return verification;
}

/**
 * Runs our strict checks that precede the signature, and supplies the one key that must have signed the
 * token.
 */
const provideKey: SecretOrKeyProvider<AuthenticatedRequest> = (request, token: string, done) => {
  const verification = verificationOf(request);
  verification.verifier.prepare(token).then((prepared) => {
    verification.prepared = prepared;
    done(null, prepared.key.key);
  }, done);
};

/**
 * Maps what passport-jwt reports to the reason for the refusal. An error before a key was provided is our own
 * and is returned unchanged: it may be an outage, which must not look like a bad token. After that, only the
 * signature can have failed.
 */
export function refusalOf(request: AuthenticatedRequest, reported: unknown): unknown {
  const { prepared } = verificationOf(request);
  return prepared ? new AccessTokenError('bad-signature', { cause: reported }) : reported;
}

/**
 * The passport-jwt strategy: jsonwebtoken verifies only the signature; our strict checks run before and after
 * it.
 */
@Injectable()
export class AccessTokenStrategy extends PassportStrategy(Strategy, ACCESS_TOKEN_STRATEGY) {
  constructor() {
    super({
      jwtFromRequest: (request: AuthenticatedRequest) => bearerToken(request.headers.authorization),
      secretOrKeyProvider: provideKey,
      algorithms: [...SIGNING_ALGORITHMS],
      jsonWebTokenOptions: SIGNATURE_ONLY,
      ignoreExpiration: SIGNATURE_ONLY.ignoreExpiration,
      passReqToCallback: true,
    });
  }

  /**
   * Called by passport-jwt after it verified the signature.
   * @throws {AccessTokenError} when any other check fails
   */
  validate(request: AuthenticatedRequest): Caller {
    const { verifier, prepared } = verificationOf(request);
    if (!prepared) throw new AccessTokenError('malformed');
    return verifier.complete(prepared);
  }
}
