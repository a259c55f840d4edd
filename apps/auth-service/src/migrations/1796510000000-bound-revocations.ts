import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds limits on data that callers can make grow: quotas of revocations, their expiry dates for purging, and
 * counts of refused token requests. Every new column is nullable or has a default, because release 1.0.0
 * writes none of them.
 */
export class BoundRevocations1796510000000 implements MigrationInterface {
  readonly name = 'BoundRevocations1796510000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION auth.find_issued_token(uuid)`);
    await runner.query(`DROP TABLE auth.revocation_quota, auth.refusal_count`);
    await runner.query(
      `ALTER TABLE auth.revocations DROP COLUMN expires_at, DROP COLUMN own, DROP COLUMN interrupts_at`,
    );
  }
}

const STATEMENTS = [
  `ALTER TABLE auth.revocations
     ADD COLUMN expires_at timestamptz,
     ADD COLUMN own boolean NOT NULL DEFAULT false,
     ADD COLUMN interrupts_at timestamptz(3)`,
  // UNLOGGED: a crash of the server loses at most a minute of counts.
  `CREATE UNLOGGED TABLE auth.revocation_quota (
     subject text COLLATE "C" PRIMARY KEY,
     window_ends_at timestamptz NOT NULL,
     used integer NOT NULL
   )`,
  `CREATE INDEX revocation_quota_window_ends_at ON auth.revocation_quota (window_ends_at)`,
  `CREATE TABLE auth.refusal_count (
     network text COLLATE "C" NOT NULL,
     minute timestamptz NOT NULL,
     refusals integer NOT NULL,
     flow text NOT NULL,
     status smallint NOT NULL,
     reason smallint,
     address inet,
     PRIMARY KEY (network, minute)
   )`,
  `CREATE INDEX refusal_count_minute ON auth.refusal_count (minute)`,
  // The service may not read the audit trail. This function reveals only a token's subject and when it was
  // issued.
  `CREATE FUNCTION auth.find_issued_token(token_id uuid)
   RETURNS TABLE (subject text, access_issued_at timestamptz, refresh_expires_at timestamptz)
   LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
     (SELECT f.subject, NULL::timestamptz, t.expires_at
      FROM auth.refresh_token t JOIN auth.refresh_family f ON f.family_id = t.family_id
      WHERE t.jti = token_id)
     UNION ALL
     (SELECT a.subject, a.occurred_at, NULL::timestamptz
      FROM auth.token_audit a WHERE a.access_token_id = token_id LIMIT 1)
     LIMIT 1
   $$`,
  `REVOKE ALL ON FUNCTION auth.find_issued_token(uuid) FROM PUBLIC`,
];

/**
 * Adds the number of refused requests that an audit row represents. A separate migration, because a
 * transaction that locks two tables could deadlock with a request that locks them in the opposite order.
 */
export class CountRefusals1796510000050 implements MigrationInterface {
  readonly name = 'CountRefusals1796510000050';

  async up(runner: QueryRunner): Promise<void> {
    // The number of refused requests that the row represents. Null: the row is about a single request.
    await runner.query(`ALTER TABLE auth.token_audit ADD COLUMN IF NOT EXISTS refusals integer`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.token_audit DROP COLUMN refusals`);
  }
}

/** Creates indexes on possibly large tables, while the service writes. */
export class IndexRevocations1796510000100 implements MigrationInterface {
  readonly name = 'IndexRevocations1796510000100';
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const index of INDEXES) await createIndexConcurrently(runner, { schema: 'auth', ...index });
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await dropIndexConcurrently(runner, 'auth', name);
  }
}

const INDEXES = [
  // Finds the token that is being revoked.
  { name: 'token_audit_access_token', table: 'token_audit', definition: '(access_token_id)' },
  // Counts a caller's revocations of other users.
  {
    name: 'revocation_of_others',
    table: 'revocation',
    definition: '(revoked_by_subject, revocation_date) WHERE NOT own',
  },
  // Find rows that may be purged before 366 days have passed.
  {
    name: 'revocation_expires_at',
    table: 'revocation',
    definition: '(expires_at) WHERE expires_at IS NOT NULL',
  },
  {
    name: 'session_revocation_expires_at',
    table: 'session_revocation',
    definition: '(expires_at) WHERE expires_at IS NOT NULL',
  },
];
