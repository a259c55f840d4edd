import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import type { RevocationKey } from './revocation';

// Hand-written SQL: ON CONFLICT locks the row and evaluates its latest version, so that one statement decides
// for all replicas, by the database's clock. A window that ends more than a minute ahead was opened before
// the clock was set back and starts anew.
const TAKE = `
  WITH taken AS (
    INSERT INTO auth.revocation_quota AS quota (subject, window_ends_at, used)
    VALUES ($1, now() + interval '1 minute', 1)
    ON CONFLICT (subject) DO UPDATE SET
      used = CASE WHEN quota.window_ends_at BETWEEN now() AND now() + interval '1 minute' THEN quota.used + 1 ELSE 1 END,
      window_ends_at = CASE WHEN quota.window_ends_at BETWEEN now() AND now() + interval '1 minute' THEN quota.window_ends_at
        ELSE now() + interval '1 minute' END
    WHERE quota.used < $2 OR quota.window_ends_at NOT BETWEEN now() AND now() + interval '1 minute'
    RETURNING 1
  )
  SELECT EXISTS (SELECT 1 FROM taken) AS taken,
    (SELECT extract(epoch FROM window_ends_at - now()) FROM auth.revocation_quota WHERE subject = $1)::float8 AS "waitSeconds"`;

// Reads auth.revocation only: revocations that count against a caller are of the specification's domains,
// which that partition holds. The count stops at the limit. ORDER BY makes the planner use the index by
// caller whatever its statistics are.
const isFull = (which: 'own' | 'NOT own'): string => `
  SELECT count(*) >= $2::int AND NOT EXISTS (
    SELECT 1 FROM auth.revocation WHERE domain = $3 AND identifier = $4 AND revoked_by_subject = ANY ($1::text[]) AND ${which}
  ) AS "isFull"
  FROM (
    SELECT 1 FROM unnest($1::text[]) AS named (subject) CROSS JOIN LATERAL (
      SELECT 1 FROM auth.revocation WHERE revoked_by_subject = named.subject AND ${which} ORDER BY revocation_date LIMIT $2::int
    ) AS kept LIMIT $2::int
  ) AS live`;
const IS_FULL_OF_OTHERS = isFull('NOT own');
const IS_FULL_OF_OWN = isFull('own');

// Reads both partitions: own revocations of technicians without an account count too, and those of their
// subject are in auth.session_revocation.
const IS_FULL_OF_APPLICATION = `
  SELECT count(*) >= $2::int AND NOT EXISTS (
    SELECT 1 FROM auth.revocations WHERE domain = $3 AND identifier = $4 AND counted_client = $1
  ) AS "isFull"
  FROM (
    SELECT 1 FROM auth.revocations WHERE counted_client = $1 ORDER BY revocation_date LIMIT $2::int
  ) AS live`;

/** Deletes the quota windows that have ended. */
export const PURGE_REVOCATION_QUOTAS = purgeBatch(
  'revocation_quota',
  `window_ends_at < now() - interval '1 minute'`,
  'window_ends_at',
);

/**
 * Counts, for all replicas, the revocations that callers set on tokens of others. For technicians without an
 * account, revocations of own tokens count too, except of sessions.
 */
@Injectable()
export class RevocationQuotasRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Takes one revocation from the holder's quota for this minute. Returns null if taken; otherwise the
   * seconds until the minute is over.
   */
  async take(holder: string, perMinute: number): Promise<number | null> {
    const [row] = await this.dataSource.query<{ taken: boolean; waitSeconds: number | null }[]>(TAKE, [
      holder,
      perMinute,
    ]);
    return row!.taken ? null : (row!.waitSeconds ?? 0);
  }

  /**
   * Returns true if the caller has at least `limit` stored revocations of tokens of others, and `key` is not
   * among them.
   * @param subjects every subject of the caller
   */
  isFull(subjects: readonly string[], limit: number, key: RevocationKey): Promise<boolean> {
    return this.ask(IS_FULL_OF_OTHERS, subjects, limit, key);
  }

  /** Like `isFull`, for revocations of the caller's own tokens. */
  isFullOfOwn(subjects: readonly string[], limit: number, key: RevocationKey): Promise<boolean> {
    return this.ask(IS_FULL_OF_OWN, subjects, limit, key);
  }

  /** Like `isFull`, for all revocations that count against an application. */
  isFullOfApplication(application: string, limit: number, key: RevocationKey): Promise<boolean> {
    return this.ask(IS_FULL_OF_APPLICATION, application, limit, key);
  }

  private async ask(
    statement: string,
    holder: string | readonly string[],
    limit: number,
    { domain, identifier }: RevocationKey,
  ): Promise<boolean> {
    const parameters = [holder, limit, domain, identifier];
    const [row] = await this.dataSource.query<{ isFull: boolean }[]>(statement, parameters);
    return row!.isFull;
  }
}
