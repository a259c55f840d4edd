import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds the active schedules that follow a calendar, ordered by facility, however many others have ended. */
export class SchedulesFollowingCalendars1800000015000 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'task',
      table: 'schedules',
      name: 'schedules_following_calendar',
      definition: `(calendar_id, facility_id) WHERE calendar_id IS NOT NULL AND status = 'Active' AND ended_at IS NULL`,
    });
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexConcurrently(runner, 'task', 'schedules_following_calendar');
  }
}
