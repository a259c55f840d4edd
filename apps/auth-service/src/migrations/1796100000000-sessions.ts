import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Revocations of sessions, subjects and applications; sessions found by whose they are. */
export class Sessions1796100000000 implements MigrationInterface {
  readonly name = 'Sessions1796100000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP INDEX auth.refresh_family_subject, auth.refresh_family_user, auth.revocation_of_sessions',
    );
    await runner.query(`DELETE FROM auth.revocation WHERE domain IN ('sid', 'sub', 'client_id')`);
    await runner.query(`ALTER TABLE auth.revocation DROP CONSTRAINT revocation_domain_check,
      ADD CONSTRAINT revocation_domain_check CHECK (domain IN ('svc-personid', 'internal-legacy', 'jti'))`);
  }
}

const STATEMENTS = [
  `ALTER TABLE auth.revocation DROP CONSTRAINT revocation_domain_check, ADD CONSTRAINT revocation_domain_check
   CHECK (domain IN ('svc-personid', 'internal-legacy', 'jti', 'sid', 'sub', 'client_id'))`,
  // Finds expired revocations of sessions without reading those that stay.
  `CREATE INDEX revocation_of_sessions ON auth.revocation (revocation_date) WHERE domain = 'sid'`,
  `CREATE INDEX refresh_family_subject ON auth.refresh_family (subject, created_at, family_id)`,
  `CREATE INDEX refresh_family_user ON auth.refresh_family (user_id, created_at, family_id) WHERE user_id IS NOT NULL`,
];
