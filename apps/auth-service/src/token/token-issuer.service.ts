import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Personas } from '@platform/personas';
import type { DataSource } from 'typeorm';
import type { Application } from '../applications/application';
import type { Identity, Resolution } from '../identity/identity';
import type { Issue, PresentedToken } from './begin-issue.query';
import { beginIssue, beginIssueWithRefresh } from './begin-issue.query';
import type { RefreshSession } from './find-refresh-session.query';
import type { PersonaRequest } from './grant-personas';
import { grantPersonas } from './grant-personas';
import { RefreshSessions } from './refresh-sessions.service';
import { REFRESH_TOKEN_LIFETIME_SECONDS } from './refresh-token';
import type { TokenFlow } from './rejection';
import { TokenRejected, TokenRejectionReason } from './rejection';
import type { TokenResponse } from './token-response';
import { successfulTokenResponse } from './token-response';
import { TokenMetrics } from './token-metrics.service';
import { TokenSigner } from './token-signer.service';

/** What a flow has established about a request. */
export interface Authentication {
  flow: TokenFlow;
  /** The application that gets the tokens; null: none is known, so there is no refresh token. */
  application: Application | null;
  resolution: Resolution;
  personas: PersonaRequest;
  /** When the user proved who they are, if that was not just now. */
  authTime?: Date;
  /** True: HS256; false: the active asymmetric key; left out: as configured. */
  hmacSigning?: boolean;
  /** The access token that is exchanged. */
  presented?: PresentedToken;
  /** The refresh token that is used up. */
  renews?: RefreshSession;
}

interface Grant {
  identity: Identity;
  personas: Personas;
}

/** The one place where tokens come from: it judges the identity and the personas, checks revocation, decides on the refresh token,
 *  and signs. */
@Injectable()
export class TokenIssuer {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly signer: TokenSigner,
    private readonly sessions: RefreshSessions,
    private readonly metrics: TokenMetrics,
  ) {}

  /** @throws {TokenRejected} AuthenticationFailed, InvalidGrant or TokenRevoked; for refreshes what RefreshSessions says too */
  async issue(authentication: Authentication): Promise<TokenResponse> {
    const { application, resolution } = authentication;
    if (resolution.outcome !== 'resolved') throw notResolved(resolution.outcome);
    const { identity } = resolution;
    const grant = { identity, personas: grantPersonas(identity, authentication.personas, application) };
    const { renews } = authentication;
    const response = await (renews === undefined
      ? this.issueAnew(authentication, grant)
      : this.renew(authentication, grant, renews));
    this.metrics.count(authentication.flow, response.rejectionReason);
    return response;
  }

  private async issueAnew(authentication: Authentication, grant: Grant): Promise<TokenResponse> {
    const { application } = authentication;
    const refreshApplication = application?.allowRefresh === true ? application : null;
    const tokenId = randomUUID();
    const issue =
      refreshApplication === null
        ? await beginIssue(this.dataSource, grant.identity, authentication.presented ?? null)
        : await this.openFamily(authentication, grant, refreshApplication, tokenId);
    if (issue.presentedRevoked) {
      throw new TokenRejected(TokenRejectionReason.TokenRevoked, 'The token has been revoked.');
    }
    const accessToken = this.signAccessToken(authentication, grant, issue.issuedAt);
    if (refreshApplication === null) return successfulTokenResponse(accessToken, null);
    const clientId = refreshApplication.applicationKey;
    const first = { jti: tokenId, subject: grant.identity.subject, clientId, issuedAt: issue.issuedAt };
    return successfulTokenResponse(accessToken, this.signer.signRefreshToken(first));
  }

  private openFamily(
    authentication: Authentication,
    grant: Grant,
    application: Application,
    tokenId: string,
  ): Promise<Issue> {
    return beginIssueWithRefresh(this.dataSource, grant.identity, authentication.presented ?? null, {
      familyId: randomUUID(),
      tokenId,
      subject: grant.identity.subject,
      applicationKey: application.applicationKey,
      flow: authentication.flow,
      personaLimit: grant.personas,
      authTime: authentication.authTime ?? null,
      lifetimeSeconds: REFRESH_TOKEN_LIFETIME_SECONDS,
    });
  }

  private async renew(
    authentication: Authentication,
    grant: Grant,
    session: RefreshSession,
  ): Promise<TokenResponse> {
    const renewal = await this.sessions.renew(session, grant.identity);
    const accessToken = this.signAccessToken(authentication, grant, renewal.issuedAt);
    const refreshToken = this.signer.signRefreshToken({
      ...renewal.refreshToken,
      subject: session.subject,
      clientId: session.applicationKey,
    });
    return successfulTokenResponse(accessToken, refreshToken);
  }

  private signAccessToken(authentication: Authentication, grant: Grant, issuedAt: Date): string {
    const clientId = authentication.application?.applicationKey ?? null;
    const authTime = authentication.authTime ?? issuedAt;
    return this.signer.signAccessToken(
      { ...grant, clientId, authTime, issuedAt },
      authentication.hmacSigning,
    );
  }
}

/** Absent, disabled and ambiguous read the same to the caller. */
function notResolved(outcome: Exclude<Resolution['outcome'], 'resolved'>): TokenRejected {
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.', {
    stage: 'resolution',
    privateDetail: outcome,
  });
}
