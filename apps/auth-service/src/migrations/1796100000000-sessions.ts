import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Revocations of sessions, subjects and applications. */
export class Sessions1796100000000 implements MigrationInterface {
  readonly name = 'Sessions1796100000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE auth.revocations DETACH PARTITION auth.revocation');
    await runner.query('DROP TABLE auth.revocations');
  }
}

const STATEMENTS = [
  // The previous release reads all of auth.revocation, and its validators refuse everything when they find a
  // domain that they do not know: the new ones are in a table beside it. Nothing is copied.
  `CREATE TABLE auth.revocations (LIKE auth.revocation,
    CONSTRAINT revocations_pkey PRIMARY KEY (domain, identifier)) PARTITION BY LIST (domain)`,
  `CREATE INDEX revocations_date ON auth.revocations (revocation_date, domain, identifier)`,
  `ALTER TABLE auth.revocations ATTACH PARTITION auth.revocation FOR VALUES IN ('svc-personid', 'internal-legacy', 'jti')`,
  `CREATE TABLE auth.session_revocation PARTITION OF auth.revocations FOR VALUES IN ('sid', 'sub', 'client_id')`,
  // Finds expired revocations of sessions without reading those that stay.
  `CREATE INDEX session_revocation_of_sessions ON auth.session_revocation (revocation_date) WHERE domain = 'sid'`,
];
