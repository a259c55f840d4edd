import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds one column in a migration of its own: a transaction that locks two tables can deadlock with a request
 * that locks them in the opposite order.
 */
export class TemplatesOfInstances1800000004999 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // Adds the column to released_instances as well, which inherits.
    await runner.query('ALTER TABLE task.instances ADD COLUMN IF NOT EXISTS template_id uuid');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE task.instances DROP template_id');
  }
}
