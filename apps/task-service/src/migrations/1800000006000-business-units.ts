import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the state of whole business units, and of facilities that no unit holds active, whose triggers are
 * deleted. The previous release writes only unit-facility pairs; a trigger derives the state of the unit from
 * them.
 */
export class BusinessUnits1800000006000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...BUSINESS_UNITS, ...PREVIOUS_RELEASE, ...FACILITY_ACTIVITY])
      await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER unit_learns_of_insert ON task.business_unit_facilities');
    await runner.query('DROP TRIGGER unit_learns_of_update ON task.business_unit_facilities');
    await runner.query('DROP FUNCTION task.learn_of_previous_release()');
    await runner.query('DROP TABLE task.business_units, task.facility_activity');
  }
}

const BUSINESS_UNITS = [
  `CREATE TABLE task.business_units (
    business_unit_id bigint PRIMARY KEY,
    active_since timestamptz,
    deactivated_at timestamptz,
    listed_at timestamptz,
    listed_facilities bigint[]
  )`,
  // A unit that holds any facility is active, even if the previous release has deactivated other facilities
  // of it.
  `INSERT INTO task.business_units (business_unit_id, active_since, deactivated_at)
    SELECT business_unit_id, min(occurred_at) FILTER (WHERE is_active),
      CASE WHEN bool_or(is_active) THEN NULL ELSE max(occurred_at) END
    FROM task.business_unit_facilities GROUP BY business_unit_id`,
];

// This release sets task.writes_units in its transactions, because it writes task.business_units itself.
const PREVIOUS_RELEASE = [
  `CREATE FUNCTION task.learn_of_previous_release() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_setting('task.writes_units', true) = 'yes' THEN RETURN NULL; END IF;
      INSERT INTO task.business_units AS unit (business_unit_id, active_since, deactivated_at)
      SELECT business_unit_id, min(occurred_at) FILTER (WHERE is_active), max(occurred_at) FILTER (WHERE NOT is_active)
      FROM written GROUP BY business_unit_id
      ON CONFLICT (business_unit_id) DO UPDATE SET
        active_since = CASE
          WHEN unit.active_since <= excluded.deactivated_at THEN NULL
          WHEN excluded.active_since < unit.deactivated_at THEN unit.active_since
          ELSE least(unit.active_since, excluded.active_since) END,
        deactivated_at = greatest(unit.deactivated_at, excluded.deactivated_at);
      RETURN NULL;
    END $$`,
  `CREATE TRIGGER unit_learns_of_insert AFTER INSERT ON task.business_unit_facilities
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION task.learn_of_previous_release()`,
  `CREATE TRIGGER unit_learns_of_update AFTER UPDATE ON task.business_unit_facilities
    REFERENCING NEW TABLE AS written FOR EACH STATEMENT EXECUTE FUNCTION task.learn_of_previous_release()`,
];

const FACILITY_ACTIVITY = [
  `CREATE TABLE task.facility_activity (
    facility_id bigint PRIMARY KEY,
    inactive_since timestamptz(3),
    active_since timestamptz(3),
    schedule text,
    time_zone text,
    jitter_seconds integer,
    is_paused boolean NOT NULL DEFAULT false
  )`,
  // Facilities that were deactivated before this migration: their time without a unit counts as a pause, too.
  // Their settings are lost.
  `INSERT INTO task.facility_activity (facility_id, inactive_since)
    SELECT facility_id, max(occurred_at) FROM task.business_unit_facilities AS pair
    WHERE NOT EXISTS (SELECT 1 FROM task.triggers AS trigger WHERE trigger.facility_id = pair.facility_id)
    GROUP BY facility_id HAVING NOT bool_or(is_active)`,
];
