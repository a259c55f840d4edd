import { createSecretKey } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { ACCESS_TOKEN_TYP } from '@platform/access-tokens';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG, refreshTokenKeys } from '../config';
import type { AuthConfig } from '../config';
import { signingKey } from '../keys/compact-jws';
import type { SigningKey } from '../keys/compact-jws';
import { SigningKeys } from '../keys/signing-keys.service';
import { REFRESH_TOKEN_TYP, isCutBySession, isRefreshTokenExpired, readRefreshToken } from './token-claims';
import type { RefreshTokenClaims, TokenKeys } from './token-claims';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';

/** Selects the keys that sign tokens (`token-claims` signs), and verifies refresh tokens. */
@Injectable()
export class TokenKeyring {
  private readonly hmacKey: SigningKey;
  /** The first key signs; all verify. */
  private readonly refreshKeys: readonly [SigningKey, ...SigningKey[]];

  constructor(
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly signingKeys: SigningKeys,
  ) {
    const accessSecret = createSecretKey(config.ACCESS_TOKEN_HMAC_KEY);
    this.hmacKey = signingKey('HS256', config.ACCESS_TOKEN_HMAC_KEY_ID, accessSecret, ACCESS_TOKEN_TYP);
    const [current, ...others] = refreshTokenKeys(config).map(({ kid, secret }) =>
      signingKey('HS256', kid, createSecretKey(secret), REFRESH_TOKEN_TYP),
    );
    this.refreshKeys = [current!, ...others];
  }

  /**
   * Returns the keys that sign the tokens of a response. Call it before anything is written, so that a
   * missing key does not consume a refresh token, code or signature.
   * @param hmacSigning false: the active asymmetric key signs the access token; undefined: as configured
   * @throws {ProblemException} 503 while no asymmetric key is loaded
   */
  keys(hmacSigning?: boolean): TokenKeys {
    const { ACCESS_TOKEN_DEFAULT_SIGNING, TOKEN_ISSUER: issuer, TOKEN_AUDIENCE: audience } = this.config;
    const isHmac = hmacSigning ?? ACCESS_TOKEN_DEFAULT_SIGNING === 'hmac';
    const access = isHmac ? this.hmacKey : this.signingKeys.active(ACCESS_TOKEN_TYP);
    return { access, refresh: this.refreshKeys[0], issuer, audience };
  }

  /**
   * Verifies a refresh token and returns its claims.
   * @throws {TokenRejected} RefreshTokenIsNotValid if this service did not sign it or it has expired;
   * RefreshThresholdExceeded if it expired because its session reached its maximum age
   */
  readRefreshToken(token: string): RefreshTokenClaims {
    const claims = readRefreshToken(token, this.refreshKeys, this.config.TOKEN_ISSUER);
    if (claims !== null && !isRefreshTokenExpired(claims, this.clock.now())) return claims;
    if (claims !== null && isCutBySession(claims)) throw sessionTooOld();
    throw new TokenRejected(TokenRejectionReason.RefreshTokenIsNotValid, 'The refresh token is not valid.', {
      privateDetail: claims === null ? 'not ours' : 'expired',
    });
  }
}

function sessionTooOld(): TokenRejected {
  const detail = 'The sign-in is too long ago; sign in again.';
  return new TokenRejected(TokenRejectionReason.RefreshThresholdExceeded, detail);
}
