import { Inject, Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isConnectionError } from '@platform/database';
import { CLOCK, Metrics, RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';
import { PURGE_TRUST_SIGNATURES } from '../applications/trust-signatures.repository';
import { TokenAuditRepository } from '../audit/token-audit.repository';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { PURGE_PASSWORD_LOCKOUTS } from '../identity/passwords/password-lockouts.repository';
import { PURGE_SIGN_INS } from '../openid/sign-ins.repository';
import { PURGE_SIGN_ON_CODES } from '../openid/sign-on-codes.repository';
import { PURGE_BATCH } from '../purge-batch';
import { purgeClockGuard } from '../purge-clock-guard';
import { PURGE_RATE_LIMITS } from '../rate-limits/rate-limits.repository';
import {
  PURGE_OLD_REVOCATIONS,
  PURGE_OLD_SESSION_REVOCATIONS,
  PURGE_SESSION_REVOCATIONS,
  PURGE_TOKEN_REVOCATIONS,
} from '../revocations/purge-revocations';
import { PURGE_REVOCATION_QUOTAS } from '../revocations/revocation-quotas.repository';
import { PURGE_REFRESH_SESSIONS } from '../token/refresh-sessions.repository';
import { PURGE_WINDOWS_TICKETS } from '../windows/windows-tickets.repository';

/**
 * The purge statements by kind. Each deletes one batch of rows that can no longer affect a decision. All
 * replicas may run them at the same time.
 */
const PURGES: Readonly<Record<string, string>> = {
  'trust-signatures': PURGE_TRUST_SIGNATURES,
  'windows-tickets': PURGE_WINDOWS_TICKETS,
  'password-lockouts': PURGE_PASSWORD_LOCKOUTS,
  'sign-ins': PURGE_SIGN_INS,
  'sign-on-codes': PURGE_SIGN_ON_CODES,
  'refresh-tokens': PURGE_REFRESH_SESSIONS,
  'rate-limits': PURGE_RATE_LIMITS,
  'revocation-quotas': PURGE_REVOCATION_QUOTAS,
  'revocations-of-tokens': PURGE_TOKEN_REVOCATIONS,
  'revocations-of-sessions': PURGE_SESSION_REVOCATIONS,
  'old-revocations': PURGE_OLD_REVOCATIONS,
  'old-revocations-of-sessions': PURGE_OLD_SESSION_REVOCATIONS,
};

/** Maximum batches of one kind per run: a million rows. The next run, a minute later, continues. */
const MAX_BATCHES = 100;

/** Deletes expired rows every minute. */
@Injectable()
export class PurgeExpiredJob extends RecurringJob {
  private readonly rows;
  private readonly failures;
  private readonly guard;
  private readonly log = new Logger('Purge');

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly audits: TokenAuditRepository,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) clock: Clock,
    metrics: Metrics,
  ) {
    super(MINUTE_MS, metrics);
    this.rows = metrics.counter('auth_purged_rows_total', 'Rows removed, by kind', ['kind']);
    this.failures = metrics.counter('auth_purge_failures_total', 'Purges that failed', ['kind']);
    this.guard = purgeClockGuard(dataSource, clock, metrics);
    for (const kind of [...Object.keys(PURGES), 'refusal-counts', 'audit']) this.failures.inc({ kind }, 0);
  }

  /**
   * Purges each kind of row independently: a failure in one does not stop the others. Starts no further
   * statement once the service is stopping, so that a backlog does not delay the stop, or once the clocks of
   * database and replica differ, because a revocation or used signature that is deleted too early is lost.
   * @throws {AggregateError} with the errors of the kinds that failed
   */
  async run(): Promise<void> {
    const errors: unknown[] = [];
    const attempt = async (kind: string, removeBatch: () => Promise<number>): Promise<void> => {
      const error = await this.purge(kind, removeBatch);
      if (error !== null) errors.push(error);
    };
    await attempt('refusal-counts', () => this.audits.writeRefusalCounts());
    const removals: [string, () => Promise<number>][] = [
      ...Object.entries(PURGES).map(([kind, statement]): [string, () => Promise<number>] => [
        kind,
        () => this.removeBatch(statement),
      ]),
      ['audit', () => this.audits.purge(this.config.AUDIT_RETENTION_DAYS)],
    ];
    for (const [kind, removeBatch] of removals) {
      if (!(await this.guard.clocksAgree())) break;
      await attempt(kind, removeBatch);
    }
    if (errors.length > 0) throw new AggregateError(errors, `${String(errors.length)} purges failed`);
  }

  /**
   * Deletes the expired rows of one kind. Returns the error that stopped it, or null.
   * @throws when the database is unreachable, because the other kinds would fail too
   */
  private async purge(kind: string, removeBatch: () => Promise<number>): Promise<unknown> {
    let total = 0;
    let failure: unknown = null;
    try {
      for (let batch = 0; batch < MAX_BATCHES && !this.stopping; batch += 1) {
        const removed = await removeBatch();
        if (removed === 0) break;
        total += removed;
        this.rows.inc({ kind }, removed);
      }
    } catch (error) {
      if (isConnectionError(error)) throw error;
      this.failures.inc({ kind });
      this.log.warn('a purge failed, and will run again', { kind, err: error });
      failure = error;
    }
    if (total > PURGE_BATCH) this.log.log('a backlog was purged', { kind, rows: total });
    return failure;
  }

  private async removeBatch(statement: string): Promise<number> {
    const [row] = await this.dataSource.query<{ removed: number }[]>(statement);
    return row?.removed ?? 0;
  }
}
