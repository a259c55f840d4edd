import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Lists are read by status since migration 1800000000010; no statement needs these indexes any more, and every instance and schedule
 * wrote into them. Replicas of the release before lose no answer, only time: their lists find other indexes.
 */
export class LeanerInstances1800000000012 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const [name] of INDEXES) await runner.query(`DROP INDEX task.${name}`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const [name, on] of INDEXES) await runner.query(`CREATE INDEX ${name} ON ${on}`);
  }
}

const INDEXES = [
  ['instances_by_facility', 'task.instances (facility_id, due_at, task_instance_id)'],
  ['instances_by_due', 'task.instances (due_at, task_instance_id)'],
  ['schedules_by_creation', 'task.schedules (created_at, schedule_id)'],
] as const;
