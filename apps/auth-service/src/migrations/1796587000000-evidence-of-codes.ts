import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds the time at which the sign-in behind a code began. Release 1.0.0 does not write the column. */
export class EvidenceOfCodes1796587000000 implements MigrationInterface {
  readonly name = 'EvidenceOfCodes1796587000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE auth.sign_on_code ADD COLUMN evidence_at timestamptz');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE auth.sign_on_code DROP COLUMN evidence_at');
  }
}
