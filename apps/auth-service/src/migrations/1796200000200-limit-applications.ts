import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the users that an application is limited to. Null, which the previous release writes, means any user.
 */
export class LimitApplications1796200000200 implements MigrationInterface {
  readonly name = 'LimitApplications1796200000200';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.application ADD COLUMN allowed_subjects text[]`);
    await runner.query(`CREATE TRIGGER audit AFTER INSERT OR DELETE ON auth.external_identity
      FOR EACH ROW EXECUTE FUNCTION auth.audit_administration('subject')`);
    await runner.query(`CREATE TRIGGER audit_update AFTER UPDATE ON auth.external_identity
      FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION auth.audit_administration('subject')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const trigger of ['audit', 'audit_update'])
      await runner.query(`DROP TRIGGER ${trigger} ON auth.external_identity`);
    await runner.query(`ALTER TABLE auth.application DROP COLUMN allowed_subjects`);
  }
}
