import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the network where a single sign-on began, to count sign-ins per network. Release 1.0.0 does not write
 * the column: its sign-ins count only towards the overall limit.
 */
export class BoundSignIns1796560000000 implements MigrationInterface {
  readonly name = 'BoundSignIns1796560000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.openid_sign_in ADD COLUMN network text COLLATE "C"`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.openid_sign_in DROP COLUMN network`);
  }
}

const INDEX = {
  schema: 'auth',
  table: 'openid_sign_in',
  name: 'openid_sign_in_network',
  definition: '(network, expires_at)',
};

/** Built while the service writes: the table may be large, because release 1.0.0 did not purge it. */
export class IndexSignIns1796560000100 implements MigrationInterface {
  readonly name = 'IndexSignIns1796560000100';
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, INDEX);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, INDEX.schema, INDEX.name);
  }
}
