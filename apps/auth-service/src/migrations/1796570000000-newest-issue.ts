import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The newest second in which tokens were issued. A sequence: noting it locks no row, so it holds up no other
 * request. Release 1.0.0 notes nothing.
 */
export class NewestIssue1796570000000 implements MigrationInterface {
  readonly name = 'NewestIssue1796570000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE SEQUENCE auth.newest_issue MINVALUE 0 START 0');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP SEQUENCE auth.newest_issue');
  }
}
