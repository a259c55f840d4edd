import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds releases that run in steps, templates that are stored once, and the end or error of a schedule.
 * Release 1.0.0 may run beside this one. It does not know the new columns; triggers maintain them when it
 * writes.
 */
export class ReleasesAndTemplates1800000005000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    // Restores a copy of the template in each instance, where the previous release reads it.
    await runner.query(`
      UPDATE task.instances AS instance SET template = known.template
      FROM task.templates AS known WHERE known.template_id = instance.template_id AND instance.template IS NULL`);
    await runner.query('DROP TRIGGER template_stored ON task.schedules');
    await runner.query('DROP TRIGGER template_short ON task.schedules');
    await runner.query('DROP TRIGGER evaluated_anew ON task.schedules');
    await runner.query('DROP FUNCTION task.store_template(), task.forget_template(), task.evaluate_anew()');
    await runner.query('DROP TABLE task.releases');
    await runner.query(`ALTER TABLE task.schedules DROP template_id, DROP ended_at, DROP error, DROP changes_since,
      DROP change_count`);
    await runner.query('DROP TABLE task.templates');
  }
}

const STATEMENTS = [
  `CREATE TABLE task.templates (
    template_id uuid PRIMARY KEY,
    template text NOT NULL CONSTRAINT templates_template_check CHECK (template::json IS NOT NULL),
    used_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX templates_by_use ON task.templates (used_at, template_id)`,
  `ALTER TABLE task.schedules
    ADD template_id uuid,
    ADD ended_at timestamptz(3),
    ADD error text,
    ADD changes_since timestamptz(3),
    ADD change_count integer NOT NULL DEFAULT 0`,
  `CREATE TABLE task.releases (
    schedule_id uuid PRIMARY KEY,
    cause text NOT NULL CONSTRAINT releases_cause_check CHECK (cause IN ('Update', 'Pause', 'Removal', 'Calendar')),
    only_copies boolean NOT NULL,
    changed_at timestamptz(3) NOT NULL,
    actor_person_id bigint,
    actor_name text,
    actor_persona smallint,
    done_until timestamptz(3) NOT NULL,
    remaining integer NOT NULL,
    stepped_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  // A template of up to 256 bytes is stored in each instance, like the name, where release 1.0.0 reads it. A
  // longer one is stored once, under its digest. `used_at` is updated at most once an hour, so that
  // transactions that use the same template do not wait for each other. Unused templates are deleted after a
  // day.
  `CREATE FUNCTION task.store_template() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.template_id := encode(substring(sha256(convert_to(NEW.template, 'UTF8')) FOR 16), 'hex')::uuid;
      IF NOT EXISTS (SELECT 1 FROM task.templates AS known
        WHERE known.template_id = NEW.template_id AND known.used_at > now() - interval '1 hour') THEN
        INSERT INTO task.templates (template_id, template) VALUES (NEW.template_id, NEW.template)
        ON CONFLICT (template_id) DO UPDATE SET used_at = now();
      END IF;
      RETURN NEW;
    END $$`,
  `CREATE TRIGGER template_stored BEFORE INSERT OR UPDATE OF template ON task.schedules
    FOR EACH ROW WHEN (octet_length(NEW.template) > 256) EXECUTE FUNCTION task.store_template()`,
  `CREATE FUNCTION task.forget_template() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.template_id := NULL;
      RETURN NEW;
    END $$`,
  `CREATE TRIGGER template_short BEFORE UPDATE OF template ON task.schedules
    FOR EACH ROW WHEN ((octet_length(NEW.template) > 256) IS NOT TRUE) EXECUTE FUNCTION task.forget_template()`,
  // A change of when a schedule is due clears its end and its error, so that it is evaluated again.
  `CREATE FUNCTION task.evaluate_anew() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.ended_at := NULL;
      NEW.error := NULL;
      RETURN NEW;
    END $$`,
  `CREATE TRIGGER evaluated_anew BEFORE UPDATE OF schedule, time_zone, start_date, end_date, status ON task.schedules
    FOR EACH ROW EXECUTE FUNCTION task.evaluate_anew()`,
];
