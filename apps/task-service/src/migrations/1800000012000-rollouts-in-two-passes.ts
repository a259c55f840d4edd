import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Records which transactions may have read a calendar's old dates, and whether the last pass, which waits
 * until those have ended, has begun.
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
