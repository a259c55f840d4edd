import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Up to which refresh token a session's used ones were pruned. Release 1.0.0 prunes none, and calls a pruned
 * one unknown (reason 4).
 */
export class PruneUsedTokens1796585000000 implements MigrationInterface {
  readonly name = 'PruneUsedTokens1796585000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE auth.refresh_family ADD COLUMN pruned_until timestamptz');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE auth.refresh_family DROP COLUMN pruned_until');
  }
}
