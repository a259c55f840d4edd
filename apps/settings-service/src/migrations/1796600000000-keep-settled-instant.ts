import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The time in milliseconds up to which a replica has served reads of the past. No later change may get an
 * earlier timestamp, even if the clock steps back. It is kept in a sequence, because a sequence's value is
 * visible to every transaction whatever its snapshot, and updates of it cause no serialization failures.
 */
const SETTLED = 'CREATE SEQUENCE settings.settled_ms AS bigint MINVALUE 0 START 0';

/** Raises the settled time. The lock keeps a slower replica from lowering it again. */
const SETTLE = `
  CREATE FUNCTION settings.settle(until_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_advisory_xact_lock('settings.settled_ms'::regclass::oid::bigint);
    IF until_ms > (SELECT last_value FROM settings.settled_ms) THEN
      PERFORM setval('settings.settled_ms', until_ms);
    END IF;
  END $$`;

/** As in the migration NoteOneInstant, but never before the settled time. */
const TRANSACTION_INSTANT = `
  CREATE OR REPLACE FUNCTION settings.transaction_instant() RETURNS timestamptz LANGUAGE plpgsql AS $$
  DECLARE
    noted text := current_setting('settings.transaction_instant', true);
  BEGIN
    IF noted <> '' THEN
      RETURN noted::timestamptz;
    END IF;
    noted := greatest(
      clock_timestamp(),
      (SELECT max(occurred_at) FROM settings.setting_history WHERE occurred_at < 'infinity'),
      (SELECT to_timestamp(last_value / 1000.0) FROM settings.settled_ms)
    )::text;
    PERFORM set_config('settings.transaction_instant', noted, true);
    RETURN noted::timestamptz;
  END $$`;

export class KeepSettledInstant1796600000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(SETTLED);
    // `appRoleGrants` run after the migrations, but writers of every release need this privilege as soon as
    // the function is replaced.
    await runner.query('GRANT SELECT ON SEQUENCE settings.settled_ms TO PUBLIC');
    await runner.query(SETTLE);
    await runner.query(TRANSACTION_INSTANT);
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}
