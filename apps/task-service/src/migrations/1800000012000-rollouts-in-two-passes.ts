import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Which transactions may have read a calendar's dates before they changed, and whether the pass that comes
 * after them has begun.
 */
export class RolloutsInTwoPasses1800000012000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      ALTER TABLE task.calendar_rollouts
        ADD next_transaction_id bigint,
        ADD is_last_pass boolean NOT NULL DEFAULT false`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE task.calendar_rollouts DROP next_transaction_id, DROP is_last_pass');
  }
}
