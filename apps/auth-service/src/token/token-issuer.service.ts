import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { together } from '@platform/database';
import type { Personas } from '@platform/personas';
import type { DataSource } from 'typeorm';
import { currentAttempt, noteInAttempt } from '../audit/token-attempt';
import type { TokenAuditRow } from '../audit/token-audit';
import type { Application } from '../applications/application';
import type { Identity, Resolution } from '../identity/identity';
import type { SigningKey } from '../keys/compact-jws';
import { TokenRateLimits } from '../rate-limits/token-rate-limits.service';
import type { Issue, IssueRequest, NewRefreshFamily, PresentedToken } from './begin-issue.query';
import { beginIssues } from './begin-issue.query';
import type { RefreshSession } from './find-refresh-session.query';
import type { PersonaRequest } from './grant-personas';
import { grantPersonas } from './grant-personas';
import { RefreshSessions } from './refresh-sessions.service';
import { REFRESH_TOKEN_LIFETIME_SECONDS } from './refresh-token';
import type { TokenFlow } from '../token-endpoints/rejection';
import { TokenRejected, TokenRejectionReason } from '../token-endpoints/rejection';
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
  /** True: the application's rate limit has admitted it already. */
  isCounted?: boolean;
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
  /** The `jti` of the access token. */
  tokenId: string;
  /** What the access token will be signed with. */
  key: SigningKey;
}

/** The one place where tokens come from: it judges the identity and the personas, checks revocation, decides on the refresh token,
 *  and signs. */
@Injectable()
export class TokenIssuer {
  private readonly beginIssue: (request: IssueRequest) => Promise<Issue>;

  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly signer: TokenSigner,
    private readonly sessions: RefreshSessions,
    private readonly metrics: TokenMetrics,
    private readonly limits: TokenRateLimits,
  ) {
    this.beginIssue = together((requests) => beginIssues(dataSource, requests));
  }

  /** @throws {TokenRejected} AuthenticationFailed, InvalidGrant or TokenRevoked; for refreshes what RefreshSessions says too
   *  @throws {TokenRateExceeded} when the application has had as many tokens as it may */
  async issue(authentication: Authentication): Promise<TokenResponse> {
    const { application, resolution } = authentication;
    const subject = resolution.outcome === 'resolved' ? resolution.identity.subject : null;
    const applicationKey = application?.applicationKey ?? null;
    noteInAttempt({ applicationKey, subject });
    if (authentication.isCounted !== true) await this.limits.admitApplication(applicationKey);
    if (resolution.outcome !== 'resolved') throw notResolved(resolution.outcome);
    const { identity } = resolution;
    const personas = grantPersonas(identity, authentication.personas, application);
    const key = this.signer.accessTokenKey(authentication.hmacSigning);
    const grant = { identity, personas, tokenId: randomUUID(), key };
    const { renews } = authentication;
    const response = await (renews === undefined
      ? this.issueAnew(authentication, grant)
      : this.renew(authentication, grant, renews));
    this.metrics.count(authentication.flow, response.rejectionReason);
    return response;
  }

  private async issueAnew(authentication: Authentication, grant: Grant): Promise<TokenResponse> {
    const { application } = authentication;
    const family = application?.allowRefresh === true ? newFamily(authentication, grant, application) : null;
    const issue = await this.beginIssue({
      identity: grant.identity,
      presented: authentication.presented ?? null,
      family,
      audit: successAudit(authentication, grant),
    });
    if (issue.presentedRevoked) {
      throw new TokenRejected(TokenRejectionReason.TokenRevoked, 'The token has been revoked.');
    }
    const accessToken = this.signAccessToken(authentication, grant, issue.issuedAt);
    if (family === null) return successfulTokenResponse(accessToken, null);
    const { tokenId: jti, subject, applicationKey: clientId } = family;
    const first = { jti, subject, clientId, issuedAt: issue.issuedAt };
    return successfulTokenResponse(accessToken, this.signer.signRefreshToken(first));
  }

  private async renew(
    authentication: Authentication,
    grant: Grant,
    session: RefreshSession,
  ): Promise<TokenResponse> {
    const renewal = await this.sessions.renew(session, grant.identity, successAudit(authentication, grant));
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
    return this.signer.signAccessToken({ ...grant, clientId, authTime, issuedAt }, grant.key);
  }
}

function newFamily(
  { flow, authTime }: Authentication,
  { identity, personas }: Grant,
  { applicationKey }: Application,
): NewRefreshFamily {
  return {
    familyId: randomUUID(),
    tokenId: randomUUID(),
    subject: identity.subject,
    applicationKey,
    flow,
    personaLimit: personas,
    authTime: authTime ?? null,
    lifetimeSeconds: REFRESH_TOKEN_LIFETIME_SECONDS,
  };
}

/** Written by the statement that issues, so that no token leaves unaudited. */
function successAudit({ flow }: Authentication, { tokenId }: Grant): TokenAuditRow {
  const reason = TokenRejectionReason.Successful;
  return { ...currentAttempt(), flow, status: 200, reason, detail: null, accessTokenId: tokenId };
}

/** Absent, disabled and ambiguous read the same to the caller. */
function notResolved(outcome: Exclude<Resolution['outcome'], 'resolved'>): TokenRejected {
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.', {
    stage: 'resolution',
    privateDetail: outcome,
  });
}
