import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Applications that get no token without a proof. The last release writes and reads nothing of it. */
export class ConfidentialApplications1796580000000 implements MigrationInterface {
  readonly name = 'ConfidentialApplications1796580000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.application ADD COLUMN confidential boolean NOT NULL DEFAULT false`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.application DROP COLUMN confidential`);
  }
}
