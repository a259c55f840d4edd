import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the id of the transaction that rotated a refresh token, and the recorded snapshots. Together they
 * distinguish an old rotation from one that was committed late. Release 1.0.0 writes neither: its rotations
 * are judged by their date.
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

/**
 * Adds the application whose quota a revocation counts against. Release 1.0.0 does not write the column: its
 * revocations count against no application. A separate migration, because a transaction that locks two tables
 * could deadlock with a request that locks them in the opposite order.
 */
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

// Indexes that count the revocations by an application's users.
const INDEXES = ['revocation', 'session_revocation'].map((table) => ({
  table,
  name: `${table}_counted_client`,
  definition: '(counted_client, revocation_date) WHERE counted_client IS NOT NULL',
}));

/** Creates indexes on possibly large tables, while the service writes. */
export class IndexCountedClients1796540000100 implements MigrationInterface {
  readonly name = 'IndexCountedClients1796540000100';
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const index of INDEXES) await createIndexConcurrently(runner, { schema: 'auth', ...index });
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await dropIndexConcurrently(runner, 'auth', name);
  }
}
