import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Creates indexes concurrently, because the tables may be large and are written to. */
export class ReleaseIndexes1800000005001 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const { name, table, definition } of INDEXES)
      await createIndexConcurrently(runner, { schema: 'task', table, name, definition });
    // With `ended_at` in the index, ended schedules are skipped without reading their rows.
    await replace(runner, 'schedules_by_facility', 'facility_id, created_at, schedule_id, status, ended_at');
    await replace(runner, 'schedules_by_status', 'status, created_at, schedule_id, ended_at');
  }

  async down(runner: QueryRunner): Promise<void> {
    await replace(runner, 'schedules_by_facility', 'facility_id, created_at, schedule_id, status');
    await replace(runner, 'schedules_by_status', 'status, created_at, schedule_id');
    for (const { name } of INDEXES) await dropIndexConcurrently(runner, 'task', name);
  }
}

const INDEXES = [
  {
    name: 'instances_by_template',
    table: 'instances',
    definition: '(template_id) WHERE template_id IS NOT NULL',
  },
  {
    name: 'released_instances_by_template',
    table: 'released_instances',
    definition: '(template_id) WHERE template_id IS NOT NULL',
  },
  {
    name: 'schedules_by_template',
    table: 'schedules',
    definition: '(template_id) WHERE template_id IS NOT NULL',
  },
  { name: 'released_instances_by_age', table: 'released_instances', definition: '(cancelled_at)' },
  {
    name: 'released_instances_by_facility_age',
    table: 'released_instances',
    definition: '(facility_id, cancelled_at, task_instance_id)',
  },
  // `end_date` is a date or an instant as the caller wrote it. Its first ten characters are a date.
  {
    name: 'schedules_ending',
    table: 'schedules',
    definition: `(end_date COLLATE "C") WHERE end_date IS NOT NULL AND ended_at IS NULL AND status = 'Active'`,
  },
  { name: 'schedules_failed', table: 'schedules', definition: '(facility_id) WHERE error IS NOT NULL' },
];

/**
 * Replaces an index. One of the two exists at any time, so lists stay fast. Safe to repeat after an
 * interruption.
 */
async function replace(runner: QueryRunner, name: string, columns: string): Promise<void> {
  const next = `${name}_next`;
  await createIndexConcurrently(runner, {
    schema: 'task',
    table: 'schedules',
    name: next,
    definition: `(${columns})`,
  });
  await dropIndexConcurrently(runner, 'task', name);
  await runner.query(`ALTER INDEX task.${next} RENAME TO ${name}`);
}
