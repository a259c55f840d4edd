import { Injectable } from '@nestjs/common';
import { SECOND_MS } from '@platform/time';
import { IdentitiesService } from '../identity/identities.service';
import type { Resolution } from '../identity/identity';
import { parseSubject } from '../identity/identity';
import type { Subject } from '../identity/identity';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import type { RefreshSession } from './refresh-sessions.repository';
import { RefreshSessionsService } from './refresh-sessions.service';
import type { RefreshTokenClaims } from './token-claims';
import type { RefreshableToken } from './token-issuer.service';
import { TokenKeyring } from './token-keyring.service';

/** A genuine refresh token: its session from the database, and its user from the stores. */
export interface PresentedRefreshToken {
  session: RefreshSession;
  /** Null for a technician without an account, whom no store knows. */
  resolution: Resolution | null;
}

/** Verifies refresh tokens, and looks up their sessions and users. */
@Injectable()
export class PresentedRefreshTokens {
  constructor(
    private readonly keyring: TokenKeyring,
    private readonly sessions: RefreshSessionsService,
    private readonly identities: IdentitiesService,
  ) {}

  /** Verifies a refresh token. @throws {TokenRejected} as `TokenKeyring.readRefreshToken` */
  read(refreshToken: string): RefreshTokenClaims {
    return this.keyring.readRefreshToken(refreshToken);
  }

  /**
   * Looks up the session and the user of a refresh token concurrently; the token names both.
   * @throws {TokenRejected} RefreshTokenIsNotValid when the token is unknown
   */
  async find({ jti, sub, sid, iat }: RefreshTokenClaims): Promise<PresentedRefreshToken> {
    const [session, resolution] = await Promise.all([
      this.sessions.get({ jti, sessionId: sid ?? null, issuedAt: new Date(iat * SECOND_MS) }),
      this.resolve(parseSubject(sub)),
    ]);
    return { session, resolution };
  }

  private async resolve(subject: Subject | null): Promise<Resolution | null> {
    if (subject === null || subject.kind === 'technician-name') return null;
    return this.identities.resolveSubject(subject);
  }
}

/**
 * Returns the token if its kind of user and its application may still refresh. The application's permission
 * may have been withdrawn since the token was issued.
 * @throws {TokenRejected} UnsupportedRefreshIdentity or InvalidGrant
 */
export function renewalOf({ session, resolution }: PresentedRefreshToken): RefreshableToken {
  if (resolution === null) {
    const detail = 'This kind of identity cannot be refreshed.';
    throw new TokenRejected(TokenRejectionReason.UnsupportedRefreshIdentity, detail);
  }
  const { application } = session;
  if (application?.allowRefresh === true && application.allowedFlows.includes('refresh'))
    return { application, resolution, session };
  const detail = 'Refresh tokens are not permitted to this application.';
  throw new TokenRejected(TokenRejectionReason.InvalidGrant, detail);
}
