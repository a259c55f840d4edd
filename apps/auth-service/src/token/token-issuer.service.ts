import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Personas } from '@platform/personas';
import { SECOND_MS, sleep } from '@platform/time';
import { mayHaveAdministrators } from '../applications/application';
import type { Application } from '../applications/application';
import type { EnabledApplication } from '../applications/applications.repository';
import { currentAttempt, noteInAttempt } from '../audit/token-attempt';
import type { IssueAuditRow } from '../audit/token-audit.repository';
import { authorityOf, narrowedClaims, withinApplication } from '../identity/authority';
import type { Authority, AuthorityClaim } from '../identity/authority';
import { parseSubject } from '../identity/identity';
import type { Identity, Resolution } from '../identity/identity';
import { TokenAllowances } from '../rate-limits/token-allowances.service';
import { authoriseSubject, grantPersonas } from './grant-personas';
import type { PersonaRequest } from './grant-personas';
import { RefreshSessionsRepository } from './refresh-sessions.repository';
import type {
  Evidence,
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
import { SignInInterruptedError } from '../rejections/sign-in-interrupted';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import { successfulTokenResponse } from './token.dto';
import type { TokenFlow } from '../rejections/token-rejection';
import type { TokenResponse } from './token.dto';
import { TokenMetrics } from './token-metrics.service';
import { TokenSigner } from './token-signer.service';

/** How often an issue is tried. One wait may not suffice: a timer may end early, and a revocation may be
 *  committed in the second after its own. */
const MAX_ISSUE_ATTEMPTS = 5;

/** Who signs in, as a flow has established it. */
export interface SignIn extends Grantable {
  application: EnabledApplication | null;
  /** The database's time when what the sign-in rests on was made, or before any of it was read. */
  evidenceAt: Date;
  /** What it rests on was made for this one exchange, as a code. */
  isCredential?: boolean;
}

/** Of whom tokens would tell what. */
interface Grantable {
  flow: TokenFlow;
  /** The application that gets the tokens; null: none is known, so there is no refresh token. */
  application: Application | null;
  resolution: Resolution;
  personas: PersonaRequest;
  /** When the user proved who they are; null or left out: just now. */
  authTime?: Date | null;
}

/**
 * A verified token that is exchanged for new ones, with the application that gets them and the user as the
 * stores know them now.
 */
export type Renewal = { application: Application | null; resolution: Resolution } & (
  | { accessTokenOf: Caller }
  /** `hmacSigning` true: the access token is signed with HS256; false: with the active asymmetric key. */
  | { session: RefreshSession; hmacSigning: boolean }
);

/** A refresh token of an application that may have one, and its user as the stores know them now. */
export interface RefreshableToken {
  application: Application;
  resolution: Resolution;
  session: RefreshSession;
}

/** What the tokens will say. */
interface Grant {
  flow: TokenFlow;
  application: Application | null;
  identity: Identity;
  personas: Personas;
  authority: Authority;
  /** Claims of `authority` that the exchanged token has narrowed. */
  narrowed: readonly AuthorityClaim[];
  authTime: Date | null;
  /** The `jti` of the access token. */
  tokenId: string;
  /** The session that the tokens belong to: of the token that is exchanged, else a new one. */
  sessionId: string;
  /** What they will be signed with. */
  keys: TokenKeys;
}

interface JwsHeader {
  alg: string;
  kid?: string;
}

/** What a token that is exchanged adds to a sign-in. */
interface PresentedFor {
  session?: string | null;
  hmacSigning?: boolean;
  /** The exchanged token. The new ones carry no more authority than it has. */
  limit?: Omit<Caller, 'authTime'>;
}

/**
 * The one place where tokens come from: it judges the identity and the personas, checks revocation, decides
 * on the refresh token, and signs.
 */
@Injectable()
export class TokenIssuer {
  constructor(
    private readonly signer: TokenSigner,
    private readonly sessions: RefreshSessionsService,
    private readonly repository: RefreshSessionsRepository,
    private readonly metrics: TokenMetrics,
    private readonly allowances: TokenAllowances,
  ) {}

  /** Tokens for a new sign-in.
   *  @throws {TokenRejected} AuthenticationFailed or InvalidGrant
   *  @throws {TokenRateExceeded} when the user signs in too often */
  async issue(signIn: SignIn): Promise<TokenResponse> {
    const { application, evidenceAt: at, isCredential = false } = signIn;
    const secretVersions = application?.secretVersions ?? [];
    return this.begin(this.grant(signIn), { at, isCredential, secretVersions });
  }

  /** Tokens for a token. They have no persona that the presented token lacks. For an access token they also
   *  have no role, facility or group that it lacks. `auth_time` stays.
   *  @throws {TokenRejected} as `issue`, or TokenRevoked; for refresh tokens as
   *  `RefreshSessionsService.renew` */
  async renew({ application, resolution, ...renewal }: Renewal): Promise<TokenResponse> {
    if ('session' in renewal) {
      const { session, hmacSigning } = renewal;
      return this.rotate(this.grantRefresh({ application, resolution, session, hmacSigning }), session);
    }
    const { authTime, ...caller } = renewal.accessTokenOf;
    const personas: PersonaRequest = { kind: 'within', personas: caller.personas };
    const signIn: Grantable = { flow: 'bearer', application, resolution, personas, authTime };
    const grant = this.grant(signIn, { session: caller.sessionId, limit: caller });
    const narrowed = narrowedClaims(grant.authority, this.grant(signIn).authority);
    const presented = { ...caller, keyId: asymmetricKeyOf(caller.token) };
    if (narrowed.length === 0) return this.begin(grant, presented);
    // A later refresh reads authority from the stores. It would give back the roles, facilities and groups
    // that this exchange left out.
    return this.begin({ ...grant, narrowed, application: withoutRefresh(application) }, presented);
  }

  /**
   * Refuses what `renew` would refuse of a refresh token that its session admits, and changes nothing.
   * @throws {TokenRejected}
   */
  async assertRefreshable(token: RefreshableToken): Promise<void> {
    const { identity } = this.grantRefresh({ ...token, hmacSigning: true });
    await this.sessions.assertNotRevoked(token.session, identity);
  }

  private grantRefresh(
    token: Pick<Renewal, 'application' | 'resolution'> & { session: RefreshSession; hmacSigning: boolean },
  ): Grant {
    const { application, resolution, session, hmacSigning } = token;
    const { authTime, personaLimit, familyId } = session;
    const personas: PersonaRequest = { kind: 'within', personas: personaLimit };
    const signIn: Grantable = { flow: 'refresh', application, resolution, personas, authTime };
    return this.grant(signIn, { session: familyId, hmacSigning });
  }

  private grant(signIn: Grantable, { session = null, hmacSigning, limit }: PresentedFor = {}): Grant {
    const { flow, application, resolution, authTime = null } = signIn;
    const subject = resolution.outcome === 'resolved' ? resolution.identity.subject : null;
    const applicationKey = application?.applicationKey ?? null;
    noteInAttempt({ applicationKey, subject });
    if (resolution.outcome !== 'resolved') throw notResolved(resolution.outcome);
    const { identity } = resolution;
    authoriseSubject(application, identity.userNameKeys);
    const personas = grantPersonas(identity, signIn.personas, application);
    const authority = withinApplication(
      authorityOf(identity, personas, limit),
      mayHaveAdministrators(application),
    );
    // Before anything is written: without a key nothing may be used up.
    const keys = this.signer.keys(hmacSigning);
    const [tokenId, sessionId] = [randomUUID(), session ?? randomUUID()];
    return {
      flow,
      application,
      identity,
      personas,
      authority,
      narrowed: [],
      authTime,
      tokenId,
      sessionId,
      keys,
    };
  }

  /** @param basis the access token that is exchanged, or what a new sign-in rests on */
  private async begin(grant: Grant, basis: PresentedToken | Evidence): Promise<TokenResponse> {
    const presented = 'tokenId' in basis ? basis : null;
    const evidence = 'tokenId' in basis ? null : basis;
    const { identity } = grant;
    const applicationKey = grant.application?.applicationKey ?? null;
    const recipient = { subject: identity.subject, applicationKey };
    if (presented === null) this.allowances.takeSignIn(recipient);
    else this.allowances.takeExchange(grant.sessionId, recipient);
    const family = newFamily(grant, this.sessions.policy.maxAgeSeconds);
    const issue = await this.awaitIssue({
      identity,
      applicationKey,
      presented,
      evidence,
      family,
      audit: auditOf(grant),
    });
    const { issuedAt, refreshExpiresAt: expiresAt } = issue;
    if (family === null) return this.respond(grant, issuedAt, null);
    const { tokenId: jti, subject, applicationKey: clientId, familyId: sessionId } = family;
    this.sessions.noteIssued(family, presented !== null);
    if (expiresAt === null) {
      this.metrics.countWithheld();
      return this.respond(grant, issuedAt, null);
    }
    return this.respond(grant, issuedAt, { jti, subject, clientId, sessionId, issuedAt, expiresAt });
  }

  /**
   * Waits while a revocation covers the present second. If the user, an administrator or an operator has set
   * one since the evidence was read, the sign-in ends with 503: the revocation may be about what it rests on.
   * A revocation by anybody else delays the sign-in by this second at most and never ends it. The same holds
   * for a revocation of an application that keeps its secrets, whoever sets it, and for one of a service,
   * unless an operator sets it.
   */
  private async awaitIssue(request: IssueRequest): Promise<Issue> {
    for (let attempts = 0; attempts < MAX_ISSUE_ATTEMPTS; attempts += 1) {
      const issue = await this.repository.issue(request);
      refuseEnded(issue, request);
      if (issue.waitMs === null) return issue;
      if (issue.waitMs > SECOND_MS) break;
      await sleep(issue.waitMs);
    }
    throw new SignInInterruptedError();
  }

  private async rotate(grant: Grant, session: RefreshSession): Promise<TokenResponse> {
    const { subject: recipient } = grant.identity;
    this.allowances.takeRefresh(session.familyId, {
      subject: recipient,
      applicationKey: session.applicationKey,
    });
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

/** @throws {TokenRejected} or {SignInInterruptedError} for what waiting does not help */
function refuseEnded(
  { presentedRevoked, applicationGone, interrupted }: Issue,
  { evidence }: IssueRequest,
): void {
  if (presentedRevoked)
    throw new TokenRejected(TokenRejectionReason.TokenRevoked, 'The token has been revoked.');
  if (applicationGone)
    throw new TokenRejected(
      TokenRejectionReason.InvalidGrant,
      'This application may not get tokens any more.',
    );
  if (!interrupted) return;
  if (evidence?.isCredential !== true) throw new SignInInterruptedError();
  const privateDetail = 'older than a revocation of its user or application';
  const detail = 'This code is not valid. Start again.';
  throw new TokenRejected(TokenRejectionReason.AuthenticationFailed, detail, { privateDetail });
}

/** The key id of a verified token that was not signed with a shared secret, else null. */
function asymmetricKeyOf(token: string): string | null {
  const header = JSON.parse(Buffer.from(token.split('.', 1)[0]!, 'base64url').toString()) as JwsHeader;
  return header.alg === 'HS256' ? null : (header.kid ?? null);
}

function withoutRefresh(application: Application | null): Application | null {
  return application === null ? null : { ...application, allowRefresh: false };
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
