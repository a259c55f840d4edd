import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The trace in which a trigger was created or last changed, as a W3C `traceparent`: its fires link to it. */
export class TriggerOrigin1800000000004 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE task.triggers ADD COLUMN origin_trace text`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE task.triggers DROP COLUMN origin_trace`);
  }
}
