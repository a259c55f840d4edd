import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Finds the schedules of a calendar. Release 1.0.0 created the index in ScheduleLifecycle1800000001000, which
 * blocked writes of schedules.
 */
export class SchedulesByCalendar1800000008000 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'task',
      table: 'schedules',
      name: 'schedules_by_calendar',
      definition: '(calendar_id, facility_id) WHERE calendar_id IS NOT NULL',
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'task', 'schedules_by_calendar');
  }
}
