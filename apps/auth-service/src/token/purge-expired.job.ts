import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import type { DataSource } from 'typeorm';
import { TokenAuditRepository } from '../audit/token-audit.repository';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { PURGE_PASSWORD_LOCKOUTS } from '../identity/passwords/password-lockouts.repository';
import { PURGE_SIGN_INS } from '../openid/sign-ins.repository';
import { PURGE_SIGN_ON_CODES } from '../openid/sign-on-codes.repository';
import { PURGE_RATE_LIMITS } from '../rate-limits/rate-limits.repository';
import { PURGE_WINDOWS_TICKETS } from '../windows/windows-tickets.repository';
import { PURGE_REFRESH_SESSIONS } from './refresh-sessions.repository';
import { PURGE_TRUST_SIGNATURES } from './trust-signatures.repository';

/** No token lives longer than 365 days. A limit, so that the index is read whatever the statistics say of other revocations. */
const purgeRevocations = (domain: 'jti' | 'sid'): string => `
  DELETE FROM auth.revocation WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM auth.revocation WHERE domain = '${domain}' AND revocation_date < now() - interval '366 days'
    ORDER BY revocation_date LIMIT 10000 FOR UPDATE SKIP LOCKED))`;

/** Remove rows that can no longer decide anything. Every statement is safe to run on all replicas at once. */
const PURGES = [
  PURGE_TRUST_SIGNATURES,
  PURGE_WINDOWS_TICKETS,
  PURGE_PASSWORD_LOCKOUTS,
  PURGE_SIGN_INS,
  PURGE_SIGN_ON_CODES,
  PURGE_REFRESH_SESSIONS,
  PURGE_RATE_LIMITS,
  purgeRevocations('jti'),
  purgeRevocations('sid'),
] as const;

/** Each removes up to 10,000 rows of either audit trail; what is left has to wait for the next minute. */
const MAX_AUDIT_PURGES = 50;

/** Keeps the tables from growing for ever. */
@Injectable()
export class PurgeExpiredJob extends RecurringJob {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly audits: TokenAuditRepository,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {
    super(MINUTE_MS);
  }

  /** Starts no further statement once the service stops: a long backlog must not hold it up. */
  async run(): Promise<void> {
    for (const purge of PURGES) {
      if (this.stopping) return;
      await this.dataSource.query(purge);
    }
    for (let purge = 0; purge < MAX_AUDIT_PURGES && !this.stopping; purge += 1)
      if ((await this.audits.purge(this.config.AUDIT_RETENTION_DAYS)) === 0) return;
  }
}
