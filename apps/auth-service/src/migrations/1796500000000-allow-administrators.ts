import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Applications that are limited in personas get no administrators unless they may. The last release writes
 * and reads nothing of it.
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
