import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const BY_FAMILY = {
  schema: 'auth',
  table: 'refresh_token',
  name: 'refresh_token_family',
  definition: '(family_id)',
};
const BY_ISSUE = {
  schema: 'auth',
  table: 'refresh_token',
  name: 'refresh_token_family_issued',
  definition: '(family_id, issued_at)',
};

/**
 * Adds an index that finds a session's newest refresh token, the unused one, among any number of used ones.
 * Release 1.0.0 also finds a session's tokens by this index. It is not a partial index of unused tokens: a
 * plan cached while the tables are small would use that index for rotations and keep it however large they
 * grow.
 */
export class NewestRefreshTokens1796550000000 implements MigrationInterface {
  readonly name = 'NewestRefreshTokens1796550000000';
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, BY_ISSUE);
    await dropIndexConcurrently(runner, 'auth', BY_FAMILY.name);
  }

  async down(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, BY_FAMILY);
    await dropIndexConcurrently(runner, 'auth', BY_ISSUE.name);
  }
}
