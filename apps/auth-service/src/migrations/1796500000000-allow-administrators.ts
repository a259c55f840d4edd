import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the permission to act for administrators, which applications limited to some personas do not have by
 * default. The previous release neither writes nor reads it.
 */
export class AllowAdministrators1796500000000 implements MigrationInterface {
  readonly name = 'AllowAdministrators1796500000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `ALTER TABLE auth.application ADD COLUMN allow_administrators boolean NOT NULL DEFAULT false`,
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.application DROP COLUMN allow_administrators`);
  }
}
