import { createSecretKey } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { ACCESS_TOKEN_TYP } from '@platform/access-tokens';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { AUTH_CONFIG, refreshTokenKeys } from '../config';
import type { AuthConfig } from '../config';
import { SIGNATURE_CHARACTERS, signCompact, signingKey } from '../keys/compact-jws';
import type { SigningKey } from '../keys/compact-jws';
import { SigningKeys } from '../keys/signing-keys.service';
import {
  REFRESH_TOKEN_TYP,
  accessTokenClaimsOf,
  epochSecond,
  fitClaims,
  isCutBySession,
  isRefreshTokenExpired,
  readRefreshToken,
  signRefreshToken,
} from './token-claims';
import type { AccessGrant, RefreshTokenClaims } from './token-claims';
import { TokenRejected, TokenRejectionReason } from './token-rejection';

/** A refresh token before it is signed: its row, and whom and which application it names. */
export interface RefreshTokenToSign {
  jti: string;
  subject: string;
  clientId: string;
  sessionId: string;
  issuedAt: Date;
  expiresAt: Date;
}

/** Turns decided grants into signed tokens, and reads refresh tokens back. */
@Injectable()
export class TokenSigner {
  private readonly hmacKey: SigningKey;
  /** The first signs, all verify. */
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

  /** The key for an access token. Asked for before anything is written: without one nothing may be used up.
   *  @param hmacSigning false: the active asymmetric key; undefined: as configured
   *  @throws {ProblemException} 503 while there is no asymmetric key */
  accessTokenKey(hmacSigning: boolean | undefined): SigningKey {
    const isHmac = hmacSigning ?? this.config.ACCESS_TOKEN_DEFAULT_SIGNING === 'hmac';
    return isHmac ? this.hmacKey : this.signingKeys.active(ACCESS_TOKEN_TYP);
  }

  signAccessToken(grant: AccessGrant, key: SigningKey): string {
    const { TOKEN_ISSUER, TOKEN_AUDIENCE } = this.config;
    const claims = accessTokenClaimsOf(grant, TOKEN_ISSUER, TOKEN_AUDIENCE);
    const fixedCharacters = key.encodedHeader.length + SIGNATURE_CHARACTERS[key.algorithm];
    return signCompact(key, fitClaims(claims, fixedCharacters));
  }

  signRefreshToken(token: RefreshTokenToSign): string {
    return signRefreshToken(this.refreshKeys[0], {
      iss: this.config.TOKEN_ISSUER,
      aud: this.config.TOKEN_ISSUER,
      sub: token.subject,
      jti: token.jti,
      sid: token.sessionId,
      iat: epochSecond(token.issuedAt),
      exp: epochSecond(token.expiresAt),
      client_id: token.clientId,
    });
  }

  /** @throws {TokenRejected} RefreshTokenIsNotValid for anything but an unexpired refresh token of ours; RefreshThresholdExceeded for one
   *  that expired with its session */
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
