import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Lists by status read as many entries as they show, and failed triggers are counted without reading the others.
 *
 * `instances_by_facility` and `instances_by_due` stay, and `schedules_by_creation` too: replicas of the release before this one read by
 * them while it is rolled out. A later release drops the ones that nothing reads any more.
 */
export class ListIndexes1800000000010 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const [name, on] of INDEXES) await runner.query(`CREATE INDEX ${name} ON ${on}`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [name] of INDEXES) await runner.query(`DROP INDEX task.${name}`);
  }
}

const INDEXES = [
  ['instances_by_status', 'task.instances (status, due_at, task_instance_id)'],
  ['instances_by_facility_status', 'task.instances (facility_id, status, due_at, task_instance_id)'],
  ['schedules_by_status', 'task.schedules (status, created_at, schedule_id)'],
  ['triggers_failed', `task.triggers (facility_id) WHERE state = 'ERROR'`],
] as const;
