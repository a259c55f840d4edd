import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Indexes on tables that may be big, made while they are written to. */
export class ReleaseIndexes1800000005001 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const { name, table, definition } of INDEXES)
      await createIndexConcurrently(runner, { schema: 'task', table, name, definition });
    // With the end of a schedule in the index, ended ones are passed over without reading their rows.
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
  // Dates and instants as callers wrote them, whose first ten characters are a date.
  {
    name: 'schedules_ending',
    table: 'schedules',
    definition: `(end_date COLLATE "C") WHERE end_date IS NOT NULL AND ended_at IS NULL AND status = 'Active'`,
  },
  { name: 'schedules_failed', table: 'schedules', definition: '(facility_id) WHERE error IS NOT NULL' },
];

/** Lists have one of the two indexes at any time. Interrupted, it goes on where it was. */
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
