import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds applications that need a proof in every flow. The previous release neither writes nor reads the
 * column.
 */
export class ConfidentialApplications1796580000000 implements MigrationInterface {
  readonly name = 'ConfidentialApplications1796580000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.application ADD COLUMN confidential boolean NOT NULL DEFAULT false`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.application DROP COLUMN confidential`);
  }
}
