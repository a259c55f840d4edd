import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Lets a late deactivation end the activations that are older than it, including those that only facility
 * lists have renewed since. For that, all activations of a unit are stored with their dates, and the
 * activation of a unit-facility pair separately from its last change. Rows that the previous release writes
 * have no separate activation date; the date of the change is used.
 */
export class BusinessUnitsInAnyOrder1800000013000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...ACTIVATIONS, ...PREVIOUS_RELEASE]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TRIGGER pair_learns_of_update ON task.business_unit_facilities');
    await runner.query('DROP FUNCTION task.learn_of_previous_pair()');
    await runner.query(LEARN_ONE_DATE);
    await runner.query('ALTER TABLE task.business_units ADD active_since timestamptz');
    await runner.query('UPDATE task.business_units SET active_since = activations[1]');
    await runner.query('ALTER TABLE task.business_units DROP activations');
    await runner.query('ALTER TABLE task.business_unit_facilities DROP activated_at');
  }
}

// No release has ever read active_since.
const ACTIVATIONS = [
  `ALTER TABLE task.business_units ADD activations timestamptz[] NOT NULL DEFAULT '{}'`,
  `UPDATE task.business_units SET activations = ARRAY[active_since] WHERE active_since IS NOT NULL`,
  `ALTER TABLE task.business_units DROP active_since`,
  `ALTER TABLE task.business_unit_facilities ADD activated_at timestamptz`,
];

const PREVIOUS_RELEASE = [
  `CREATE OR REPLACE FUNCTION task.learn_of_previous_release() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_setting('task.writes_units', true) = 'yes' THEN RETURN NULL; END IF;
      INSERT INTO task.business_units AS unit (business_unit_id, activations, deactivated_at)
      SELECT business_unit_id, coalesce(array_agg(DISTINCT occurred_at) FILTER (WHERE is_active), '{}'),
        max(occurred_at) FILTER (WHERE NOT is_active)
      FROM written GROUP BY business_unit_id
      ON CONFLICT (business_unit_id) DO UPDATE SET
        activations = ARRAY(
          SELECT at FROM unnest(unit.activations) AS at WHERE at > coalesce(excluded.deactivated_at, '-infinity')
          UNION
          SELECT at FROM unnest(excluded.activations) AS at WHERE at >= coalesce(unit.deactivated_at, '-infinity')
          ORDER BY at),
        deactivated_at = greatest(unit.deactivated_at, excluded.deactivated_at);
      RETURN NULL;
    END $$`,
  `CREATE FUNCTION task.learn_of_previous_pair() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.activated_at := NULL;
      RETURN NEW;
    END $$`,
  `CREATE TRIGGER pair_learns_of_update BEFORE UPDATE ON task.business_unit_facilities
    FOR EACH ROW WHEN (current_setting('task.writes_units', true) IS DISTINCT FROM 'yes')
    EXECUTE FUNCTION task.learn_of_previous_pair()`,
];

const LEARN_ONE_DATE = `
  CREATE OR REPLACE FUNCTION task.learn_of_previous_release() RETURNS trigger LANGUAGE plpgsql AS $$
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
    END $$`;
