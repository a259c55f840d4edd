import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * What tells a rotation of a refresh token that is old from one whose commit was late, and which application
 * a revocation counts for. Release 1.0.0 writes none of it: what it rotates is judged by its date, and what
 * it revokes counts for no application.
 */
export class LateCommits1796540000000 implements MigrationInterface {
  readonly name = 'LateCommits1796540000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.refresh_token ADD COLUMN rotated_in bigint`);
    await runner.query(
      `CREATE TABLE auth.recorded_snapshot (recorded_at timestamptz PRIMARY KEY, snapshot text NOT NULL)`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE auth.recorded_snapshot`);
    await runner.query(`ALTER TABLE auth.refresh_token DROP COLUMN rotated_in`);
  }
}

/** By itself: a transaction with the locks of two tables and a request that locks them in the other order
 *  would end each other. */
export class CountClients1796540000050 implements MigrationInterface {
  readonly name = 'CountClients1796540000050';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE auth.revocations ADD COLUMN IF NOT EXISTS counted_client text COLLATE "C"`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.revocations DROP COLUMN counted_client`);
  }
}

// Count what the users of an application have revoked.
const INDEXES = ['revocation', 'session_revocation'].map((table) => ({
  table,
  name: `${table}_counted_client`,
  definition: '(counted_client, revocation_date) WHERE counted_client IS NOT NULL',
}));

/** Indexes of tables that may be large, built while the service writes. */
export class IndexCountedClients1796540000100 implements MigrationInterface {
  readonly name = 'IndexCountedClients1796540000100';
  /** CREATE INDEX CONCURRENTLY runs in no transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const index of INDEXES) await createIndexConcurrently(runner, { schema: 'auth', ...index });
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await dropIndexConcurrently(runner, 'auth', name);
  }
}
