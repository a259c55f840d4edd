import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds expired token revocations without reading those of users, which stay. */
export class PurgeIndexes1764400000000 implements MigrationInterface {
  readonly name = 'PurgeIndexes1764400000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE INDEX revocation_of_tokens ON auth.revocation (revocation_date) WHERE domain = 'jti'`,
    );
    // Families used to be looked for by their age; now they go with their last token. A family is made together with a token: one
    // without has lost its last.
    await runner.query(`
      DELETE FROM auth.refresh_family f
      WHERE NOT EXISTS (SELECT 1 FROM auth.refresh_token t WHERE t.family_id = f.family_id)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX auth.revocation_of_tokens`);
  }
}
