import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A new schedule counts its facility's active ones: with their states in the index no page of the table is
 * read for any that a vacuum has seen, and vacuums of a table that mostly grows come soon. The release before
 * reads by the same columns in the same order.
 */
export class SchedulesCountedByIndex1800000004000 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await replaceIndex(runner, 'facility_id, created_at, schedule_id, status');
    await runner.query('ALTER TABLE task.schedules SET (autovacuum_vacuum_insert_scale_factor = 0.01)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE task.schedules RESET (autovacuum_vacuum_insert_scale_factor)');
    await replaceIndex(runner, 'facility_id, created_at, schedule_id');
  }
}

const NEXT = 'schedules_by_facility_next';

/** Lists have one of the two indexes at any time. Interrupted, it goes on where it was. */
async function replaceIndex(runner: QueryRunner, columns: string): Promise<void> {
  const index = { schema: 'task', table: 'schedules', name: NEXT, definition: `(${columns})` };
  await createIndexConcurrently(runner, index);
  await dropIndexConcurrently(runner, 'task', 'schedules_by_facility');
  await runner.query(`ALTER INDEX task.${NEXT} RENAME TO schedules_by_facility`);
}
