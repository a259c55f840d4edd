import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Keeps `template_id` correct when release 1.0.0 copies a changed template into future instances: that
 * release does not know the column.
 */
export class FollowTemplates1800000005002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE OR REPLACE FUNCTION task.follow_template() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          NEW.template_id := (SELECT template_id FROM task.schedules WHERE schedule_id = NEW.schedule_id);
          RETURN NEW;
        END $$`);
    await runner.query(`
      CREATE OR REPLACE TRIGGER template_followed BEFORE UPDATE OF template ON task.instances
        FOR EACH ROW EXECUTE FUNCTION task.follow_template()`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER template_followed ON task.instances');
    await runner.query('DROP FUNCTION task.follow_template()');
  }
}
