import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Records which business units hold which facility active. The previous release may run before this one,
 * beside it, or after a rollback. It records changes per business unit only. A change that it records makes
 * this release ignore older changes of the same unit. Changes by this release are copied to the table of the
 * previous one.
 */
export class BusinessUnitFacilities1800000002000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE task.business_unit_facilities (
        business_unit_id bigint NOT NULL,
        facility_id bigint NOT NULL,
        is_active boolean NOT NULL,
        event_id uuid NOT NULL,
        occurred_at timestamptz NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (business_unit_id, facility_id)
      )`);
    // Finds other units that hold a facility active.
    await runner.query(`
      CREATE INDEX business_unit_facilities_active ON task.business_unit_facilities (facility_id) WHERE is_active`);
    for (const statement of PREVIOUS_RELEASE) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER heard ON task.business_unit_changes');
    await runner.query('DROP TABLE task.business_unit_facilities');
    await runner.query('DROP FUNCTION task.hear_previous_release(), task.tell_previous_release()');
    await runner.query('ALTER TABLE task.business_unit_changes DROP per_unit_at');
  }
}

// The previous release writes task.business_unit_changes directly, this one only through the triggers below.
// A deactivation by the previous release does not say for which facilities, so it ends all of the unit's, as
// that release would have.
const PREVIOUS_RELEASE = [
  `ALTER TABLE task.business_unit_changes ADD per_unit_at timestamptz`,
  `UPDATE task.business_unit_changes SET per_unit_at = occurred_at`,
  `CREATE FUNCTION task.hear_previous_release() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      UPDATE task.business_unit_changes SET per_unit_at = NEW.occurred_at WHERE business_unit_id = NEW.business_unit_id;
      IF NEW.change_type = 'Deactivated' THEN
        UPDATE task.business_unit_facilities SET is_active = false, event_id = NEW.event_id, occurred_at = NEW.occurred_at
        WHERE business_unit_id = NEW.business_unit_id AND is_active AND occurred_at <= NEW.occurred_at;
      END IF;
      RETURN NULL;
    END $$`,
  `CREATE TRIGGER heard AFTER INSERT OR UPDATE ON task.business_unit_changes
    FOR EACH ROW WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION task.hear_previous_release()`,
  `CREATE FUNCTION task.tell_previous_release() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO task.business_unit_changes AS applied (business_unit_id, event_id, change_type, occurred_at)
      SELECT DISTINCT business_unit_id, event_id, CASE WHEN is_active THEN 'Activated' ELSE 'Deactivated' END, occurred_at FROM written
      ON CONFLICT (business_unit_id) DO UPDATE
        SET event_id = excluded.event_id, change_type = excluded.change_type, occurred_at = excluded.occurred_at, applied_at = now()
        WHERE applied.occurred_at < excluded.occurred_at;
      RETURN NULL;
    END $$`,
  ...['INSERT', 'UPDATE'].map(
    (event) => `CREATE TRIGGER told_of_${event.toLowerCase()} AFTER ${event} ON task.business_unit_facilities
      REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION task.tell_previous_release()`,
  ),
];
