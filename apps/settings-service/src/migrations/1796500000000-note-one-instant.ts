import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * The instant of a transaction's history entries. All of them have one, so no instant shows half of what was
 * written together. It is noted when the first entry is inserted, after the rows are locked. It is never
 * before an instant that was committed earlier: after the clock was set back, changes keep the last instant
 * until the clock has caught up.
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
 * Revisions begin with the millisecond. A failover or a restore that loses commits sets the sequence back,
 * but not the time. So no ETag is issued twice for different values. The last 20 bits are the sequence's.
 */
const NEXT_REVISION = `
  CREATE FUNCTION settings.next_revision() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT ((extract(epoch FROM clock_timestamp()) * 1000)::bigint << 20) | (nextval('settings.setting_revision') & 1048575)
  $$`;

/** A column's default, so that replicas of the release before write the same while both run. */
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
 * By itself: a transaction with the locks of two tables and a request that locks them in the other order
 * would end each other.
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
