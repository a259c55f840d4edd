import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * A fire moves its trigger to another instant, and with that writes an entry into every index of the table. The one of names repeated
 * the primary key, since a name is made of the facility's number. Room in each page keeps the moved row in it.
 */
export class LeanerTriggers1800000000011 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE task.triggers DROP CONSTRAINT triggers_identity');
    await runner.query('ALTER TABLE task.triggers SET (fillfactor = 80)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE task.triggers RESET (fillfactor)');
    await runner.query(
      'ALTER TABLE task.triggers ADD CONSTRAINT triggers_identity UNIQUE (trigger_group, trigger_name)',
    );
  }
}
