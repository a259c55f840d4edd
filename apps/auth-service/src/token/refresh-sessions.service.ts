import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { DatabaseUnavailableError } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { currentAttempt } from '../audit/token-attempt';
import { ISSUED, TokenAuditRepository } from '../audit/token-audit.repository';
import type { IssueAuditRow } from '../audit/token-audit.repository';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import type { Identity } from '../identity/identity';
import { RevocationsRepository } from '../revocations/revocations.repository';
import { BoundSessionsJob } from './bound-sessions.job';
import { RefreshSessionsRepository } from './refresh-sessions.repository';
import type { NewRefreshFamily, RefreshSession, RefreshTokenName } from './refresh-sessions.repository';
import type { RefreshPolicy } from './refresh-state';
import { decideRefresh, isRevokedByUser } from './refresh-state';
import { REFRESH_TOKEN_LIFETIME_SECONDS, epochSecond } from './token-claims';
import { TokenRateExceeded, rateLimitRefusals } from '../rate-limits/rate-limit';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';

/** The result of a refresh: the next refresh token, and the issue date of the access token. */
export interface Renewal {
  issuedAt: Date;
  refreshToken: { jti: string; issuedAt: Date; expiresAt: Date };
}

/**
 * Maximum attempts at one refresh. An attempt fails if the token was rotated or revoked after it was read.
 * The second attempt then returns the successor or rejects the token, unless the state changes once more.
 */
const MAX_ATTEMPTS = 3;

const PUBLIC_DETAIL = {
  [TokenRejectionReason.TokenRevoked]: 'The refresh token has been revoked.',
  [TokenRejectionReason.RefreshTokenIsNotValid]: 'The refresh token is not valid.',
  [TokenRejectionReason.RefreshThresholdExceeded]: 'The sign-in is too long ago; sign in again.',
} as const;

/**
 * Refreshes sessions. A family is a session that has refresh tokens. Each refresh token is used once and
 * replaced by its successor.
 */
@Injectable()
export class RefreshSessionsService {
  private readonly logger = new Logger('RefreshSessions');
  readonly policy: RefreshPolicy;
  private readonly reuses;
  private readonly refusals;

  constructor(
    private readonly repository: RefreshSessionsRepository,
    private readonly audits: TokenAuditRepository,
    private readonly revocations: RevocationsRepository,
    private readonly bounds: BoundSessionsJob,
    @Inject(AUTH_CONFIG) config: AuthConfig,
    metrics: Metrics,
  ) {
    this.reuses = metrics.counter(
      'auth_refresh_reuses_total',
      'Refresh tokens reused after the grace window; their family is revoked',
    );
    this.refusals = rateLimitRefusals(metrics);
    this.policy = { maxAgeSeconds: config.REFRESH_MAX_AGE, idleSeconds: config.REFRESH_IDLE ?? null };
  }

  /**
   * Reads the session behind a refresh token.
   * @throws {TokenRejected} RefreshTokenIsNotValid when the token is unknown
   */
  async get(name: RefreshTokenName): Promise<RefreshSession> {
    const session = await this.repository.find(name);
    if (session !== null) return session;
    throw rejected(TokenRejectionReason.RefreshTokenIsNotValid, 'no such row');
  }

  /**
   * Refuses the tokens that `admit` refuses, but does not end the family of a reused one, and ignores the
   * hourly limit.
   * @throws {TokenRejected}
   * @throws {DatabaseUnavailableError} while the commit of the token's rotation cannot be dated
   */
  assertUsable(session: RefreshSession): void {
    const decision = decideRefresh(session, this.policy);
    if (decision.action === 'reject') throw rejected(decision.reason);
    if (decision.action === 'reused') throw rejected(TokenRejectionReason.TokenRevoked, 'reused');
    if (decision.action === 'undecided') throw undecided();
  }

  /**
   * Refuses a token that a revocation of its user or application covers. Checks all current identifiers of
   * the user, because an account may have been linked after the sign-in.
   * @throws {TokenRejected} TokenRevoked
   */
  async assertNotRevoked(session: RefreshSession, identity: Identity): Promise<void> {
    const revokedAt = await this.repository.newestRevocation(identity, session.applicationKey);
    if (isRevokedByUser(session.issuedAt, revokedAt)) throw rejected(TokenRejectionReason.TokenRevoked);
  }

  /**
   * Decides whether a token may be refreshed. Reuse ends the token's family, because the request may come
   * from a thief or from the owner, and the two cannot be told apart.
   * @throws {TokenRejected} TokenRevoked, RefreshTokenIsNotValid or RefreshThresholdExceeded
   * @throws {TokenRateExceeded} when the session has reached its hourly limit of refreshes
   * @throws {DatabaseUnavailableError} while the commit of the token's rotation cannot be dated
   */
  async admit(session: RefreshSession): Promise<'rotate' | 'repeat-successor'> {
    const decision = decideRefresh(session, this.policy);
    switch (decision.action) {
      case 'rotate':
      case 'repeat-successor':
        return decision.action;
      case 'reject':
        throw rejected(decision.reason);
      case 'undecided':
        throw undecided();
      case 'wait':
        this.refusals.inc({ by: 'session' });
        throw new TokenRateExceeded('session', decision.seconds, false);
      case 'reused':
        await this.endReused(session);
        this.reuses.inc();
        this.logger.warn('refresh token reused: session ended', {
          sessionId: session.sessionId,
          subject: session.subject,
        });
        throw rejected(TokenRejectionReason.TokenRevoked, 'reused');
    }
  }

  /** Notes the session of a sign-in or exchange, so that `BoundSessionsJob` checks its bounds. */
  noteIssued({ sessionId, subject, applicationKey }: NewRefreshFamily, isExchange: boolean): void {
    if (isExchange) this.bounds.noteRefreshed(sessionId);
    this.bounds.noteOpened({ subject, applicationKey });
  }

  private async endReused({ sessionId, subject, applicationKey }: RefreshSession): Promise<void> {
    const { address, traceId } = currentAttempt();
    await this.revocations.put({
      domain: 'sid',
      identifier: sessionId,
      subject,
      clientId: applicationKey,
      address,
      traceId,
      because: 'reuse',
      own: true,
    });
  }

  /**
   * Rotates the token, or returns the successor that a concurrent or repeated request has created. Both are
   * audited.
   * @throws {TokenRejected} as `admit`
   */
  async renew(session: RefreshSession, identity: Identity, audit: IssueAuditRow): Promise<Renewal> {
    let current = session;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const action = await this.admit(current);
      const renewal = await (action === 'rotate'
        ? this.rotate(current, identity, audit)
        : this.repeat(current, identity, audit));
      if (renewal !== null) return renewal;
      await this.assertNotRevoked(current, identity);
      const { jti, sessionId, issuedAt } = current;
      current = await this.get({ jti, sessionId, issuedAt });
    }
    throw rejected(TokenRejectionReason.RefreshTokenIsNotValid, 'the state kept changing');
  }

  private async repeat(
    session: RefreshSession,
    identity: Identity,
    audit: IssueAuditRow,
  ): Promise<Renewal | null> {
    const renewal = repeatSuccessor(session);
    if (renewal !== null) await this.assertNotRevoked(session, identity);
    // A repeat writes no token, so its audit row needs a statement of its own. No token is issued unaudited.
    if (renewal !== null) await this.audits.insert([{ ...audit, ...ISSUED, ageMs: 0 }]);
    return renewal;
  }

  private async rotate(
    session: RefreshSession,
    identity: Identity,
    audit: IssueAuditRow,
  ): Promise<Renewal | null> {
    const successorJti = randomUUID();
    const lifetimeSeconds = REFRESH_TOKEN_LIFETIME_SECONDS;
    const { jti, sessionId, applicationKey } = session;
    const { maxAgeSeconds } = this.policy;
    const rotated = await this.repository.rotate({
      jti,
      successorJti,
      sessionId,
      applicationKey,
      lifetimeSeconds,
      maxAgeSeconds,
      identity,
      audit,
    });
    if (rotated === null) return null;
    this.bounds.noteRefreshed(sessionId);
    return { issuedAt: rotated.issuedAt, refreshToken: { jti: successorJti, ...rotated } };
  }
}

function repeatSuccessor(session: RefreshSession): Renewal | null {
  const { successorJti, successorIssuedAt, successorExpiresAt } = session;
  if (successorJti === null || successorIssuedAt === null || successorExpiresAt === null) return null;
  return {
    issuedAt: new Date(epochSecond(session.now) * SECOND_MS),
    refreshToken: { jti: successorJti, issuedAt: successorIssuedAt, expiresAt: successorExpiresAt },
  };
}

function undecided(): DatabaseUnavailableError {
  return new DatabaseUnavailableError('the commit of the refresh token’s rotation cannot be dated yet');
}

function rejected(reason: keyof typeof PUBLIC_DETAIL, privateDetail?: string): TokenRejected {
  const options = privateDetail === undefined ? {} : { privateDetail };
  return new TokenRejected(reason, PUBLIC_DETAIL[reason], options);
}
