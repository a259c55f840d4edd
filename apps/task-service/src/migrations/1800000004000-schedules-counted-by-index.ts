import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Creating a schedule counts the facility's active ones. With the status in the index, an index-only scan
 * reads no table page that has been vacuumed; the storage setting makes vacuum run soon after inserts. The
 * previous release can use the index as well: its columns come first, in the same order.
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

/**
 * Replaces an index. One of the two exists at any time, so lists stay fast. Safe to repeat after an
 * interruption.
 */
async function replaceIndex(runner: QueryRunner, columns: string): Promise<void> {
  const index = { schema: 'task', table: 'schedules', name: NEXT, definition: `(${columns})` };
  await createIndexConcurrently(runner, index);
  await dropIndexConcurrently(runner, 'task', 'schedules_by_facility');
  await runner.query(`ALTER INDEX task.${NEXT} RENAME TO schedules_by_facility`);
}
