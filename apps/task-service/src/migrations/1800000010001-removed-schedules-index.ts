import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds removed schedules by age. Those without an instant sort last. */
export class RemovedSchedulesIndex1800000010001 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'task',
      table: 'schedules',
      name: 'schedules_removed',
      definition: `(removed_at, schedule_id) WHERE status = 'Removed'`,
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'task', 'schedules_removed');
  }
}
