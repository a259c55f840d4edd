import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import type { DataSource } from 'typeorm';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';

/** Rows that can no longer decide anything. Every statement is safe to run on all replicas at once. */
const PURGES = [
  // A signature older than 300 s is refused by its timestamp; a minute more covers clocks that differ.
  `DELETE FROM auth.trust_replay WHERE seen_at < now() - interval '360 seconds'`,
  // Good for 300 s of clock skew on either side; a minute more as above.
  `DELETE FROM auth.windows_ticket WHERE seen_at < now() - interval '660 seconds'`,
  `DELETE FROM auth.password_lockout
   WHERE last_failure_at < now() - interval '1 day' AND (locked_until IS NULL OR locked_until < now())`,
  `DELETE FROM auth.openid_sign_in WHERE expires_at < now()`,
  // A day after expiry, so that a token is still known while any clock could accept it. Its family goes with its last token:
  // looked for by age, every session that lives long would be looked at every time.
  `WITH expired AS (
     DELETE FROM auth.refresh_token WHERE expires_at < now() - interval '1 day' RETURNING family_id
   )
   DELETE FROM auth.refresh_family f USING (SELECT DISTINCT family_id FROM expired) ended
   WHERE f.family_id = ended.family_id AND NOT EXISTS (
     SELECT 1 FROM auth.refresh_token t
     WHERE t.family_id = f.family_id AND t.expires_at >= now() - interval '1 day')`,
  `DELETE FROM auth.rate_limit WHERE free_at < now()`,
  // No token lives longer than 365 days. A limit, so that the index is read whatever the statistics say of other revocations.
  `DELETE FROM auth.revocation WHERE ctid = ANY (ARRAY(
     SELECT ctid FROM auth.revocation WHERE domain = 'jti' AND revocation_date < now() - interval '366 days'
     ORDER BY revocation_date LIMIT 10000 FOR UPDATE SKIP LOCKED))`,
] as const;

/** Removes the oldest rows of the audit trail, a bounded number at a time. The service has no other right over them. */
const PURGE_AUDIT = `SELECT auth.purge_audit($1)::int AS removed`;
/** Each removes up to 10,000 rows of either trail; what is left has to wait for the next minute. */
const MAX_AUDIT_PURGES = 50;

/** Keeps the tables from growing for ever. */
@Injectable()
export class PurgeExpiredJob extends RecurringJob {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
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
    await this.purgeAudit();
  }

  private async purgeAudit(): Promise<void> {
    for (let purge = 0; purge < MAX_AUDIT_PURGES && !this.stopping; purge += 1) {
      const parameters = [this.config.AUDIT_RETENTION_DAYS];
      const [row] = await this.dataSource.query<{ removed: number }[]>(PURGE_AUDIT, parameters);
      if (row === undefined || row.removed === 0) return;
    }
  }
}
