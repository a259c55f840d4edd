import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Indexes a facility's schedules by state, for counting the active ones when a schedule is created, and for
 * lists of one state. Neither reads the schedules in other states.
 */
export class SchedulesByState1800000011000 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const { name, predicate } of INDEXES)
      await createIndexConcurrently(runner, {
        schema: 'task',
        table: 'schedules',
        name,
        definition: `(facility_id, created_at, schedule_id) WHERE ${predicate}`,
      });
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await dropIndexConcurrently(runner, 'task', name);
  }
}

// Creating a schedule writes to the first of these only.
const INDEXES = [
  { name: 'schedules_active', predicate: `status = 'Active' AND ended_at IS NULL` },
  { name: 'schedules_ended', predicate: `status = 'Active' AND ended_at IS NOT NULL` },
  { name: 'schedules_paused', predicate: `status = 'Paused'` },
  { name: 'schedules_removed_by_facility', predicate: `status = 'Removed'` },
];
