import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics } from '@platform/service-defaults';
import { together } from '@platform/database';
import type { DataSource } from 'typeorm';
import { insertTokenAudits } from '../audit/insert-token-audits.query';
import type { TokenAuditRow } from '../audit/token-audit';
import { currentAttempt } from '../audit/token-attempt';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import type { Identity } from '../identity/identity';
import type { RefreshSession } from './find-refresh-session.query';
import { findRefreshSessions } from './find-refresh-session.query';
import type { RefreshPolicy } from './refresh-state';
import { decideRefresh, issueInstant } from './refresh-state';
import { REFRESH_TOKEN_LIFETIME_SECONDS } from './refresh-token';
import { TokenRejected, TokenRejectionReason } from '../token-endpoints/rejection';
import { revokeRefreshFamily } from './revoke-refresh-family.query';
import type { Rotated, Rotation } from './rotate-refresh-token.query';
import { rotateRefreshTokens } from './rotate-refresh-token.query';

/** What a refresh yields: the next refresh token of the family, and the instant of issue of the access token. */
export interface Renewal {
  issuedAt: Date;
  refreshToken: { jti: string; issuedAt: Date };
}

/** Every lost race means that another request has rotated the token, so the second look is decisive but for a revocation. */
const MAX_LOOKS = 3;

const PUBLIC_DETAIL = {
  [TokenRejectionReason.TokenRevoked]: 'The refresh token has been revoked.',
  [TokenRejectionReason.RefreshTokenIsNotValid]: 'The refresh token is not valid.',
  [TokenRejectionReason.RefreshThresholdExceeded]: 'The sign-in is too long ago; sign in again.',
} as const;

/** Refresh tokens of one login form a family; each is used once and replaced by its successor. */
@Injectable()
export class RefreshSessions {
  private readonly logger = new Logger(RefreshSessions.name);
  private readonly policy: RefreshPolicy;
  private readonly find: (jti: string) => Promise<RefreshSession | null>;
  private readonly rotateOne: (rotation: Rotation) => Promise<Rotated | null>;
  private readonly reuses;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(AUTH_CONFIG) config: AuthConfig,
    metrics: Metrics,
  ) {
    this.reuses = metrics.counter(
      'auth_refresh_reuses_total',
      'Refresh tokens presented again after their time: their family is revoked',
    );
    this.policy = { maxAgeSeconds: config.REFRESH_MAX_AGE, idleSeconds: config.REFRESH_IDLE ?? null };
    this.find = together((jtis) => findRefreshSessions(dataSource, jtis));
    this.rotateOne = together((rotations) => rotateRefreshTokens(dataSource, rotations));
  }

  /** @throws {TokenRejected} RefreshTokenIsNotValid when the token is not known */
  async get(jti: string): Promise<RefreshSession> {
    const session = await this.find(jti);
    if (session !== null) return session;
    throw rejected(TokenRejectionReason.RefreshTokenIsNotValid, 'no such row');
  }

  /** Refuses a token that may not be refreshed. A reused one ends its family: of thief and owner, nobody knows which this is.
   *  @throws {TokenRejected} TokenRevoked, RefreshTokenIsNotValid or RefreshThresholdExceeded */
  async admit(session: RefreshSession): Promise<'rotate' | 'repeat-successor'> {
    const decision = decideRefresh(session, this.policy);
    switch (decision.action) {
      case 'rotate':
      case 'repeat-successor':
        return decision.action;
      case 'reject':
        throw rejected(decision.reason);
      case 'reused':
        await revokeRefreshFamily(this.dataSource, session.familyId, 'reuse', currentAttempt());
        this.reuses.inc();
        this.logger.warn('refresh token reused: family revoked', {
          familyId: session.familyId,
          subject: session.subject,
        });
        throw rejected(TokenRejectionReason.TokenRevoked, 'reused');
    }
  }

  /** Rotates the token, or finds the successor that a concurrent or repeated request has made; audited either way.
   *  @throws {TokenRejected} as `admit` */
  async renew(session: RefreshSession, identity: Identity, audit: TokenAuditRow): Promise<Renewal> {
    let current = session;
    for (let look = 1; look <= MAX_LOOKS; look += 1) {
      const action = await this.admit(current);
      const renewal = await (action === 'rotate'
        ? this.rotate(current, identity, audit)
        : this.repeat(current, audit));
      if (renewal !== null) return renewal;
      current = await this.get(current.jti);
    }
    throw rejected(TokenRejectionReason.RefreshTokenIsNotValid, 'the state kept changing');
  }

  private async repeat(session: RefreshSession, audit: TokenAuditRow): Promise<Renewal | null> {
    const renewal = repeatSuccessor(session);
    // Nothing else is written here, and no token leaves unaudited.
    if (renewal !== null) await insertTokenAudits(this.dataSource, [{ ...audit, ageMs: 0 }]);
    return renewal;
  }

  private async rotate(
    session: RefreshSession,
    identity: Identity,
    audit: TokenAuditRow,
  ): Promise<Renewal | null> {
    const successorJti = randomUUID();
    const lifetimeSeconds = REFRESH_TOKEN_LIFETIME_SECONDS;
    const rotation = { jti: session.jti, successorJti, lifetimeSeconds, identity, audit };
    const rotated = await this.rotateOne(rotation);
    if (rotated === null) return null;
    return { issuedAt: rotated.issuedAt, refreshToken: { jti: successorJti, issuedAt: rotated.issuedAt } };
  }
}

function repeatSuccessor(session: RefreshSession): Renewal | null {
  const { successorJti, successorIssuedAt } = session;
  if (successorJti === null || successorIssuedAt === null) return null;
  return {
    issuedAt: issueInstant(session.now, session.userRevokedAt),
    refreshToken: { jti: successorJti, issuedAt: successorIssuedAt },
  };
}

function rejected(reason: keyof typeof PUBLIC_DETAIL, privateDetail?: string): TokenRejected {
  const options = privateDetail === undefined ? {} : { privateDetail };
  return new TokenRejected(reason, PUBLIC_DETAIL[reason], options);
}
