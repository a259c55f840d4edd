import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the newest second in which tokens were issued. It is a sequence, because updating one locks no row and
 * blocks no other request. Release 1.0.0 does not update it.
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
