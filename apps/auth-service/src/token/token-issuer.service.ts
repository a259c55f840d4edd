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
import { TokenMetrics } from '../audit/token-metrics.service';
import { authorityOf, narrowedClaims, withinApplication } from '../identity/authority';
import type { Authority, AuthorityClaim } from '../identity/authority';
import { parseSubject } from '../identity/identity';
import type { Identity, Resolution } from '../identity/identity';
import { TokenAllowances } from '../rate-limits/token-allowances.service';
import { SignInInterruptedError } from '../rejections/sign-in-interrupted';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import type { TokenFlow } from '../rejections/token-rejection';
import { notResolved } from '../rejections/unresolved-user';
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
import { successfulTokenResponse } from './token.dto';
import type { TokenResponse } from './token.dto';
import {
  REFRESH_TOKEN_LIFETIME_SECONDS,
  refreshTokenClaimsOf,
  signAccessToken,
  signRefreshToken,
} from './token-claims';
import type { RefreshTokenToSign, TokenKeys } from './token-claims';
import { TokenKeyring } from './token-keyring.service';

/**
 * Maximum attempts to issue tokens. Before a further attempt, the issuer waits until the revoked second is
 * over. One wait may not suffice: the timer may fire early, and a revocation that is committed after the
 * second of its date gets a new date.
 */
const MAX_ISSUE_ATTEMPTS = 5;

/** A sign-in that a flow has authenticated. */
export interface SignIn extends GrantRequest {
  application: EnabledApplication | null;
  /**
   * The database's time when the sign-in's evidence (a code) was created, or a time before any of the
   * evidence was read.
   */
  evidenceAt: Date;
  /** True if the evidence was created for this one exchange, e.g. a single sign-on code. */
  isCredential?: boolean;
}

/** The request for a grant, from which the content of the tokens is decided. */
interface GrantRequest {
  flow: TokenFlow;
  /** The application that gets the tokens. Null: unknown, so no refresh token is issued. */
  application: Application | null;
  resolution: Resolution;
  personas: PersonaRequest;
  /** The time at which the user authenticated; null or absent: now. */
  authTime?: Date | null;
}

/**
 * A verified token to exchange, with the application that gets the new tokens and the current state of the
 * user in the stores.
 */
export type Renewal = { application: Application | null; resolution: Resolution } & (
  | { accessTokenOf: Caller }
  /** `hmacSigning` true: the access token is signed with HS256; false: with the active asymmetric key. */
  | { session: RefreshSession; hmacSigning: boolean }
);

/** A refresh token of an application that may have one, with the current state of its user in the stores. */
export interface RefreshableToken {
  application: Application;
  resolution: Resolution;
  session: RefreshSession;
}

/** The decided content of the tokens. */
interface Grant {
  flow: TokenFlow;
  application: Application | null;
  identity: Identity;
  personas: Personas;
  authority: Authority;
  /** Claims of `authority` with fewer values than the user holds, because the exchanged token has fewer. */
  narrowed: readonly AuthorityClaim[];
  authTime: Date | null;
  /** The `jti` of the access token. */
  tokenId: string;
  /** The session of the tokens: that of the exchanged token, otherwise a new one. */
  sessionId: string;
  /** The keys that sign the tokens. */
  keys: TokenKeys;
}

interface JwsHeader {
  alg: string;
  kid?: string;
}

/** Properties of an exchanged token that shape the new tokens. */
interface ExchangedToken {
  session?: string | null;
  hmacSigning?: boolean;
  /** The exchanged access token. The new token never carries more authority than this one. */
  limit?: Omit<Caller, 'authTime'>;
}

/**
 * The only issuer of tokens. It checks the identity, personas and revocations, decides on the refresh token,
 * and signs.
 */
@Injectable()
export class TokenIssuer {
  constructor(
    private readonly keyring: TokenKeyring,
    private readonly sessions: RefreshSessionsService,
    private readonly repository: RefreshSessionsRepository,
    private readonly metrics: TokenMetrics,
    private readonly allowances: TokenAllowances,
  ) {}

  /**
   * Issues tokens for a new sign-in.
   * @throws {TokenRejected} AuthenticationFailed or InvalidGrant
   * @throws {TokenRateExceeded} when the user signs in too often
   * @throws {SignInInterruptedError} when a revocation interrupts the sign-in
   */
  async issue(signIn: SignIn): Promise<TokenResponse> {
    const { application, evidenceAt: at, isCredential = false } = signIn;
    const secretVersions = application?.secretVersions ?? [];
    return this.begin(this.grant(signIn), { at, isCredential, secretVersions });
  }

  /**
   * Exchanges a token for new ones with the same `auth_time`. The new tokens have no persona that the
   * exchanged token lacks. If it is an access token, the new tokens also have no role, facility or group that
   * it lacks.
   * @throws {TokenRejected} as `issue`, or TokenRevoked; for refresh tokens as `RefreshSessionsService.renew`
   */
  async renew({ application, resolution, ...renewal }: Renewal): Promise<TokenResponse> {
    if ('session' in renewal) {
      const { session, hmacSigning } = renewal;
      return this.rotate(this.grantRefresh({ application, resolution, session, hmacSigning }), session);
    }
    const { authTime, ...caller } = renewal.accessTokenOf;
    const personas: PersonaRequest = { kind: 'within', personas: caller.personas };
    const request: GrantRequest = { flow: 'bearer', application, resolution, personas, authTime };
    const grant = this.grant(request, { session: caller.sessionId, limit: caller });
    const narrowed = narrowedClaims(grant.authority, this.grant(request).authority);
    const presented = { ...caller, keyId: asymmetricKeyOf(caller.token) };
    if (narrowed.length === 0) return this.begin(grant, presented);
    // No refresh token: a refresh reads authority from the stores and would restore the roles, facilities and
    // groups that this exchange removed.
    return this.begin({ ...grant, narrowed, application: withoutRefresh(application) }, presented);
  }

  /**
   * Checks, without changing anything, that `renew` would accept a refresh token that
   * `RefreshSessionsService.admit` accepts.
   * @throws {TokenRejected} as `renew`
   */
  async assertRefreshable(token: RefreshableToken): Promise<void> {
    const { identity } = this.grantRefresh({ ...token, hmacSigning: true });
    await this.sessions.assertNotRevoked(token.session, identity);
  }

  private grantRefresh(
    token: Pick<Renewal, 'application' | 'resolution'> & { session: RefreshSession; hmacSigning: boolean },
  ): Grant {
    const { application, resolution, session, hmacSigning } = token;
    const { authTime, personaLimit, sessionId } = session;
    const personas: PersonaRequest = { kind: 'within', personas: personaLimit };
    const request: GrantRequest = { flow: 'refresh', application, resolution, personas, authTime };
    return this.grant(request, { session: sessionId, hmacSigning });
  }

  private grant(request: GrantRequest, { session = null, hmacSigning, limit }: ExchangedToken = {}): Grant {
    const { flow, application, resolution, authTime = null } = request;
    const subject = resolution.outcome === 'resolved' ? resolution.identity.subject : null;
    const applicationKey = application?.applicationKey ?? null;
    noteInAttempt({ applicationKey, subject });
    if (resolution.outcome !== 'resolved') throw notResolved(resolution.outcome);
    const { identity } = resolution;
    authoriseSubject(application, identity.userNameKeys);
    const personas = grantPersonas(identity, request.personas, application);
    const authority = withinApplication(
      authorityOf(identity, personas, limit),
      mayHaveAdministrators(application),
    );
    // Read before anything is written, so that a missing key does not consume a refresh token or code.
    const keys = this.keyring.keys(hmacSigning);
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

  /**
   * Issues tokens that do not come from a refresh.
   * @param basis the exchanged access token, or the evidence of a new sign-in
   */
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
    const { tokenId: jti, subject, applicationKey: clientId, sessionId } = family;
    this.sessions.noteIssued(family, presented !== null);
    if (expiresAt === null) {
      this.metrics.countWithheld();
      return this.respond(grant, issuedAt, null);
    }
    return this.respond(grant, issuedAt, { jti, subject, clientId, sessionId, issuedAt, expiresAt });
  }

  /**
   * Issues tokens. If a revocation covers the current second, waits for the next second. A revocation set
   * during the sign-in refuses it if that revocation may concern the evidence of the sign-in (see
   * `INTERRUPTED`); any other revocation only delays the sign-in to the next second.
   * @throws {TokenRejected} TokenRevoked, InvalidGrant or AuthenticationFailed
   * @throws {SignInInterruptedError}
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
    this.allowances.takeRefresh(session.sessionId, {
      subject: recipient,
      applicationKey: session.applicationKey,
    });
    const { issuedAt, refreshToken } = await this.sessions.renew(session, grant.identity, auditOf(grant));
    const { subject, applicationKey: clientId, sessionId } = session;
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

/**
 * Throws if the issue is refused for a reason that does not go away by waiting.
 * @throws {TokenRejected} when the exchanged token is revoked, the application is disabled, or the code is
 * older than a revocation
 * @throws {SignInInterruptedError} when a revocation interrupts the sign-in
 */
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

/** Returns the key id of a verified token that an asymmetric key signed; null for HS256. */
function asymmetricKeyOf(token: string): string | null {
  const header = JSON.parse(Buffer.from(token.split('.', 1)[0]!, 'base64url').toString()) as JwsHeader;
  return header.alg === 'HS256' ? null : (header.kid ?? null);
}

function withoutRefresh(application: Application | null): Application | null {
  return application === null ? null : { ...application, allowRefresh: false };
}

/** Returns the refresh token to issue; null if the application or the kind of user may not have one. */
function newFamily(grant: Grant, maxAgeSeconds: number): NewRefreshFamily | null {
  const { flow, application, identity, personas, authTime } = grant;
  if (application?.allowRefresh !== true) return null;
  // No store knows a technician without an account, so a refresh could not look the user up.
  if (parseSubject(identity.subject)?.kind === 'technician-name') return null;
  return {
    sessionId: grant.sessionId,
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

/** Returns the audit row, which the issuing statement writes, so that no token is issued unaudited. */
function auditOf({ flow, tokenId }: Grant): IssueAuditRow {
  return { ...currentAttempt(), flow, accessTokenId: tokenId };
}
