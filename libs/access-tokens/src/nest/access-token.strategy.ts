import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-jwt';
import type { SecretOrKeyProvider } from 'passport-jwt';
import { bearerToken, AccessTokenError } from '../token/access-token-error';
import { SIGNATURE_ONLY } from '../token/access-token-verifier';
import type { AccessTokenVerifier, PreparedToken } from '../token/access-token-verifier';
import type { Caller } from '../token/caller';
import { SIGNING_ALGORITHMS } from '../token/parse-token';
import type { AuthenticatedRequest } from './access-rules';

export const ACCESS_TOKEN_STRATEGY = 'access-token';

interface Verification {
  readonly verifier: AccessTokenVerifier;
  prepared?: PreparedToken;
}

/**
 * Passport keeps its strategies in one place per process, where several applications may run (tests). So the
 * strategy holds nothing of its own: each request brings the verifier of its application.
 */
const verifications = new WeakMap<AuthenticatedRequest, Verification>();

/** Must precede the strategy for each request. */
export function beginVerification(request: AuthenticatedRequest, verifier: AccessTokenVerifier): void {
  verifications.set(request, { verifier });
}

function verificationOf(request: AuthenticatedRequest): Verification {
  const verification = verifications.get(request);
  if (!verification) throw new Error('the access-token strategy runs only behind AccessTokenGuard');
  return verification;
}

/** Our strict checks before the signature; yields the one key that this token must be signed with. */
const provideKey: SecretOrKeyProvider<AuthenticatedRequest> = (request, token: string, done) => {
  const verification = verificationOf(request);
  verification.verifier.prepare(token).then((prepared) => {
    verification.prepared = prepared;
    done(null, prepared.key.key);
  }, done);
};

/**
 * Why a request was refused, from what passport-jwt reports. Our own errors from before the signature come
 * through as they are (an outage among them must not look like a bad token); once a key was provided, only
 * the signature can have failed.
 */
export function refusalOf(request: AuthenticatedRequest, reported: unknown): unknown {
  const { prepared } = verificationOf(request);
  return prepared ? new AccessTokenError('bad-signature', { cause: reported }) : reported;
}

/**
 * passport-jwt's strategy: it has jsonwebtoken verify the signature, between our strict checks before and
 * after.
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
   * Called by passport-jwt once the signature is good.
   * @throws {AccessTokenError} when anything else is not
   */
  validate(request: AuthenticatedRequest): Caller {
    const { verifier, prepared } = verificationOf(request);
    if (!prepared) throw new AccessTokenError('malformed');
    return verifier.complete(prepared);
  }
}
