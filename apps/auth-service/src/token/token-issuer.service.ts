import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Personas } from '@platform/personas';
import { Metrics } from '@platform/service-defaults';
import { SECOND_MS, sleep } from '@platform/time';
import type { Application } from '../applications/application';
import { currentAttempt, noteInAttempt } from '../audit/token-attempt';
import type { IssueAuditRow } from '../audit/token-audit.repository';
import { TooMuchWorkError } from '../bounded-work';
import { authorityOf } from '../identity/authority';
import type { Authority } from '../identity/authority';
import { parseSubject } from '../identity/identity';
import type { Identity, Resolution } from '../identity/identity';
import { RateLimitsService } from '../rate-limits/rate-limits.service';
import { authoriseSubject, grantPersonas } from './grant-personas';
import type { PersonaRequest } from './grant-personas';
import { RefreshSessionsRepository } from './refresh-sessions.repository';
import type {
  Issue,
  IssueRequest,
  NewRefreshFamily,
  PresentedToken,
  RefreshSession,
} from './refresh-sessions.repository';
import { RefreshSessionsService } from './refresh-sessions.service';
import {
  REFRESH_TOKEN_LIFETIME_SECONDS,
  refreshTokenClaimsOf,
  signAccessToken,
  signRefreshToken,
} from './token-claims';
import type { RefreshTokenToSign, TokenKeys } from './token-claims';
import {
  REJECTION_STATUS,
  TOKEN_FLOWS,
  TokenRejected,
  TokenRejectionReason,
} from '../rejections/token-rejection';
import { successfulTokenResponse } from './token.dto';
import type { TokenFlow } from '../rejections/token-rejection';
import type { TokenResponse } from './token.dto';
import { TokenSigner } from './token-signer.service';

/** Who signs in, as a flow has established it. */
export interface SignIn {
  flow: TokenFlow;
  /** The application that gets the tokens; null: none is known, so there is no refresh token. */
  application: Application | null;
  resolution: Resolution;
  personas: PersonaRequest;
  /** When the user proved who they are; null or left out: just now. */
  authTime?: Date | null;
}

/** A verified token that is exchanged for new ones, with the application that gets them and the user as the stores know them now. */
export type Renewal = { application: Application | null; resolution: Resolution } & (
  | { accessTokenOf: Caller }
  /** `hmacSigning` true: the access token is signed with HS256; false: with the active asymmetric key. */
  | { session: RefreshSession; hmacSigning: boolean }
);

/** What the tokens will say. */
interface Grant {
  flow: TokenFlow;
  application: Application | null;
  identity: Identity;
  personas: Personas;
  authority: Authority;
  authTime: Date | null;
  /** The `jti` of the access token. */
  tokenId: string;
  /** The session that the tokens belong to: of the token that is exchanged, else a new one. */
  sessionId: string;
  /** What they will be signed with. */
  keys: TokenKeys;
}

/** What a token that is exchanged adds to a sign-in. */
interface PresentedFor {
  session?: string | null;
  hmacSigning?: boolean;
  /** Of whose authority nothing is exceeded. */
  limit?: Omit<Caller, 'authTime'>;
}

/** Counts the responses of the token endpoints: those with tokens here, rejections where they are sent. */
@Injectable()
export class TokenMetrics {
  private readonly responses;

  constructor(metrics: Metrics) {
    this.responses = metrics.counter('auth_token_answers_total', 'Answers of the token endpoints', [
      'flow',
      'reason',
    ]);
    // Prometheus does not see a series' first step: every series is there from the start.
    for (const flow of TOKEN_FLOWS) {
      for (const reason of reasonsOf(flow)) this.responses.inc({ flow, reason }, 0);
    }
  }

  count(flow: TokenFlow, reason: TokenRejectionReason): void {
    this.responses.inc({ flow, reason: TokenRejectionReason[reason] });
  }
}

/** The one place where tokens come from: it judges the identity and the personas, checks revocation, decides on the refresh token,
 *  and signs. */
@Injectable()
export class TokenIssuer {
  constructor(
    @Inject(RateLimitsService) private readonly limits: RateLimitsService | null,
    private readonly signer: TokenSigner,
    private readonly sessions: RefreshSessionsService,
    private readonly repository: RefreshSessionsRepository,
    private readonly metrics: TokenMetrics,
  ) {}

  /** Tokens for a new sign-in.
   *  @throws {TokenRejected} AuthenticationFailed or InvalidGrant
   *  @throws {TokenRateExceeded} when the application has had as many tokens as it may */
  async issue(signIn: SignIn): Promise<TokenResponse> {
    return this.begin(await this.grant(signIn), null);
  }

  /** Tokens for a token: never for more personas than it grants, nor for more authority than an access token has, and the sign-in stays as old as it is.
   *  @throws {TokenRejected} as `issue`, or TokenRevoked; for refresh tokens as `RefreshSessionsService.renew`
   *  @throws {TokenRateExceeded} */
  async renew({ application, resolution, ...renewal }: Renewal): Promise<TokenResponse> {
    if ('session' in renewal) {
      const { session, hmacSigning } = renewal;
      const { authTime, personaLimit } = session;
      const personas: PersonaRequest = { kind: 'within', personas: personaLimit };
      const signIn: SignIn = { flow: 'refresh', application, resolution, personas, authTime };
      return this.rotate(await this.grant(signIn, { session: session.familyId, hmacSigning }), session);
    }
    const { authTime, ...caller } = renewal.accessTokenOf;
    const personas: PersonaRequest = { kind: 'within', personas: caller.personas };
    const signIn: SignIn = { flow: 'bearer', application, resolution, personas, authTime };
    const grant = await this.grant(signIn, { session: caller.sessionId, limit: caller });
    return this.begin(grant, caller);
  }

  private async grant(
    signIn: SignIn,
    { session = null, hmacSigning, limit }: PresentedFor = {},
  ): Promise<Grant> {
    const { flow, application, resolution, authTime = null } = signIn;
    const subject = resolution.outcome === 'resolved' ? resolution.identity.subject : null;
    const applicationKey = application?.applicationKey ?? null;
    noteInAttempt({ applicationKey, subject });
    // A signed trust request was counted together with its signature.
    if (flow !== 'trust') await this.limits?.admitApplication(applicationKey);
    if (resolution.outcome !== 'resolved') throw notResolved(resolution.outcome);
    const { identity } = resolution;
    authoriseSubject(application, identity.userNameKeys);
    const personas = grantPersonas(identity, signIn.personas, application);
    const authority = authorityOf(identity, personas, limit);
    // Before anything is written: without a key nothing may be used up.
    const keys = this.signer.keys(hmacSigning);
    const [tokenId, sessionId] = [randomUUID(), session ?? randomUUID()];
    return { flow, application, identity, personas, authority, authTime, tokenId, sessionId, keys };
  }

  /** @param presented the access token that is exchanged */
  private async begin(grant: Grant, presented: PresentedToken | null): Promise<TokenResponse> {
    const family = newFamily(grant, this.sessions.policy.maxAgeSeconds);
    const { identity } = grant;
    const applicationKey = grant.application?.applicationKey ?? null;
    const issue = await this.awaitIssue({
      ...{ identity, applicationKey, presented, family, audit: auditOf(grant) },
    });
    const { issuedAt, refreshExpiresAt: expiresAt } = issue;
    if (family === null || expiresAt === null) return this.respond(grant, issuedAt, null);
    const { tokenId: jti, subject, applicationKey: clientId, familyId: sessionId } = family;
    return this.respond(grant, issuedAt, { jti, subject, clientId, sessionId, issuedAt, expiresAt });
  }

  /** Waits while a revocation covers the present second. Another one meanwhile leaves no verdict: it may be about what the sign-in rests on. */
  private async awaitIssue(request: Omit<IssueRequest, 'waitedFor'>): Promise<Issue> {
    for (let waitedFor: Date | null = null; ;) {
      const issue: Issue = await this.repository.issue({ ...request, waitedFor });
      if (issue.presentedRevoked)
        throw new TokenRejected(TokenRejectionReason.TokenRevoked, 'The token has been revoked.');
      if (issue.waitMs === null) return issue;
      if (issue.waitMs > SECOND_MS) throw new TooMuchWorkError('revoked while it waited');
      await sleep(issue.waitMs);
      waitedFor = issue.revokedAt;
    }
  }

  private async rotate(grant: Grant, session: RefreshSession): Promise<TokenResponse> {
    const { issuedAt, refreshToken } = await this.sessions.renew(session, grant.identity, auditOf(grant));
    const { subject, applicationKey: clientId, familyId: sessionId } = session;
    return this.respond(grant, issuedAt, { ...refreshToken, subject, clientId, sessionId });
  }

  private respond(grant: Grant, issuedAt: Date, refreshToken: RefreshTokenToSign | null): TokenResponse {
    const clientId = grant.application?.applicationKey ?? null;
    const authTime = grant.authTime ?? issuedAt;
    const { keys } = grant;
    const response = successfulTokenResponse(
      signAccessToken(keys, { ...grant, clientId, authTime, issuedAt }),
      refreshToken && signRefreshToken(keys.refresh, refreshTokenClaimsOf(refreshToken, keys.issuer)),
    );
    this.metrics.count(grant.flow, response.rejectionReason);
    return response;
  }
}

/** Null: the application may not have a refresh token. */
function newFamily(grant: Grant, maxAgeSeconds: number): NewRefreshFamily | null {
  const { flow, application, identity, personas, authTime } = grant;
  if (application?.allowRefresh !== true) return null;
  // No store can find them again.
  if (parseSubject(identity.subject)?.kind === 'technician-name') return null;
  return {
    familyId: grant.sessionId,
    tokenId: randomUUID(),
    subject: identity.subject,
    applicationKey: application.applicationKey,
    flow,
    personaLimit: personas,
    authTime,
    lifetimeSeconds: REFRESH_TOKEN_LIFETIME_SECONDS,
    maxAgeSeconds,
  };
}

/** Written by the statement that issues, so that no token leaves unaudited. */
function auditOf({ flow, tokenId }: Grant): IssueAuditRow {
  return { ...currentAttempt(), flow, accessTokenId: tokenId };
}

/** Absent, disabled and ambiguous read the same to the caller. */
export function notResolved(outcome: Exclude<Resolution['outcome'], 'resolved'>): TokenRejected {
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.', {
    stage: 'resolution',
    privateDetail: outcome,
  });
}

function reasonsOf(flow: TokenFlow): string[] {
  const statuses: Readonly<Record<string, unknown>> = REJECTION_STATUS[flow];
  return Object.entries(TokenRejectionReason)
    .filter(([, value]) => value === TokenRejectionReason.Successful || (statuses[value] ?? null) !== null)
    .map(([name]) => name);
}
