import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds a schedule that is not removed and names a calendar, however many removed ones name it. */
export class CalendarsInUse1800000012001 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'task',
      table: 'schedules',
      name: 'schedules_using_calendar',
      definition: `(calendar_id, facility_id) WHERE calendar_id IS NOT NULL AND status <> 'Removed'`,
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'task', 'schedules_using_calendar');
  }
}
