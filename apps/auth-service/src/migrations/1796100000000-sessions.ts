import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds revocations of sessions, subjects and applications. */
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
  // The new domains get a table of their own. Release 1.0.0 reads all of auth.revocation, and its validators
  // refuse every token when they find an unknown domain. No rows are copied.
  `CREATE TABLE auth.revocations (LIKE auth.revocation,
    CONSTRAINT revocations_pkey PRIMARY KEY (domain, identifier)) PARTITION BY LIST (domain)`,
  `CREATE INDEX revocations_date ON auth.revocations (revocation_date, domain, identifier)`,
  `ALTER TABLE auth.revocations ATTACH PARTITION auth.revocation FOR VALUES IN ('svc-personid', 'internal-legacy', 'jti')`,
  `CREATE TABLE auth.session_revocation PARTITION OF auth.revocations FOR VALUES IN ('sid', 'sub', 'client_id')`,
  // Finds expired session revocations without reading those that are kept.
  `CREATE INDEX session_revocation_of_sessions ON auth.session_revocation (revocation_date) WHERE domain = 'sid'`,
];
