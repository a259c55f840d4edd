import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Returns the timestamp of the current transaction's history entries. All entries of a transaction share it,
 * so a read at any instant sees all of its writes or none. It is set when the first entry is inserted, after
 * the rows are locked. It is never before a timestamp that was committed earlier: after the clock is set
 * back, changes repeat the last timestamp until the clock has caught up.
 */
const TRANSACTION_INSTANT = `
  CREATE FUNCTION settings.transaction_instant() RETURNS timestamptz LANGUAGE plpgsql AS $$
  DECLARE
    noted text := current_setting('settings.transaction_instant', true);
  BEGIN
    IF noted <> '' THEN
      RETURN noted::timestamptz;
    END IF;
    noted := greatest(clock_timestamp(), (SELECT max(occurred_at) FROM settings.setting_history WHERE occurred_at < 'infinity'))::text;
    PERFORM set_config('settings.transaction_instant', noted, true);
    RETURN noted::timestamptz;
  END $$`;

/**
 * Returns a revision: the time in milliseconds in the high bits, and the low 20 bits of the sequence. A
 * failover or a restore that loses commits sets the sequence back but not the time, so no ETag is issued for
 * two different values.
 */
const NEXT_REVISION = `
  CREATE FUNCTION settings.next_revision() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint << 20) | (nextval('settings.setting_revision') & 1048575)
  $$`;

/**
 * Uses a column default, so that replicas of the previous release write the same timestamps while both
 * releases run.
 */
export class NoteOneInstant1796500000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(TRANSACTION_INSTANT);
    await runner.query(NEXT_REVISION);
    await runner.query(
      'ALTER TABLE settings.setting_history ALTER COLUMN occurred_at SET DEFAULT settings.transaction_instant()',
    );
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}

/**
 * A migration of its own: locking both tables in one transaction could deadlock with a request that locks
 * them in the other order.
 */
export class DateRevisions1796500000050 implements MigrationInterface {
  readonly name = 'DateRevisions1796500000050';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'ALTER TABLE settings.setting ALTER COLUMN revision SET DEFAULT settings.next_revision()',
    );
  }

  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}
