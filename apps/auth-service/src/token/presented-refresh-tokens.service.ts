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
import { TokenSigner } from './token-signer.service';

/** A genuine refresh token as the database knows it, and its user as the stores do. */
export interface PresentedRefreshToken {
  session: RefreshSession;
  /** Null: a technician without an account, whom no store can find again. */
  resolution: Resolution | null;
}

/** Reads refresh tokens, and looks up what they stand for. */
@Injectable()
export class PresentedRefreshTokens {
  constructor(
    private readonly signer: TokenSigner,
    private readonly sessions: RefreshSessionsService,
    private readonly identities: IdentitiesService,
  ) {}

  /** @throws {TokenRejected} as `TokenSigner.readRefreshToken` */
  read(refreshToken: string): RefreshTokenClaims {
    return this.signer.readRefreshToken(refreshToken);
  }

  /**
   * The token itself names the user, so both look-ups run at once.
   * @throws {TokenRejected} RefreshTokenIsNotValid when it is not known
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

/** The token if it may be renewed at all: its permission may have been withdrawn since it was issued.
 *  @throws {TokenRejected} UnsupportedRefreshIdentity or InvalidGrant */
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
