import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * By itself: a transaction with the locks of two tables and a request that locks them in the other order
 * would end each other.
 */
export class TemplatesOfInstances1800000004999 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // Also to released_instances, which inherits.
    await runner.query('ALTER TABLE task.instances ADD COLUMN IF NOT EXISTS template_id uuid');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE task.instances DROP template_id');
  }
}
