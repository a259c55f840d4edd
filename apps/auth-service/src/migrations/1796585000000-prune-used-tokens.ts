import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the issue time up to which a session's used refresh tokens were pruned. Release 1.0.0 prunes none, and
 * rejects a pruned token as unknown (reason 4).
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
