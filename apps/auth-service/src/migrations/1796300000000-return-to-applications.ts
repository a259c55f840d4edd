import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds single sign-on that returns to an application: its registered addresses, and codes waiting to be
 * exchanged.
 */
export class ReturnToApplications1796300000000 implements MigrationInterface {
  readonly name = 'ReturnToApplications1796300000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.application ADD COLUMN return_urls text[] NOT NULL DEFAULT '{}'`);
    await runner.query(`CREATE TABLE auth.sign_on_code (
      code_hash bytea PRIMARY KEY,
      application_key text COLLATE "C" NOT NULL,
      code_challenge bytea NOT NULL,
      issuer text COLLATE "C" NOT NULL,
      subject text COLLATE "C" NOT NULL,
      auth_time timestamptz NOT NULL,
      expires_at timestamptz NOT NULL
    )`);
    await runner.query(`CREATE INDEX sign_on_code_expires_at ON auth.sign_on_code (expires_at)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE auth.sign_on_code`);
    await runner.query(`ALTER TABLE auth.application DROP COLUMN return_urls`);
  }
}
