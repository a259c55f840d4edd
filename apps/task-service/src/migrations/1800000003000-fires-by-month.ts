import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Partitions fires by month, so that old ones are deleted by dropping a table. */
export class FiresByMonth1800000003000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP FUNCTION task.keep_fires(integer)`);
    await runner.query(`ALTER TABLE task.fires DETACH PARTITION task.trigger_fires`);
    await runner.query(`INSERT INTO task.trigger_fires SELECT * FROM task.fires`);
    await runner.query(`DROP TABLE task.fires`);
  }
}

// The first monthly partition begins at least two months ahead: until then the previous release, which only
// knows task.trigger_fires, can write to that table, now the default partition. If a month's partition cannot
// be created, its fires go to the default partition. Before a month is dropped, fires that are still needed
// are moved there: those made late, and those at the position of a trigger that is paused or in error.
export const KEEP_FIRES = `
  CREATE FUNCTION task.keep_fires(retention_days integer) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '2s' AS $$
  DECLARE
    young timestamptz := now() - greatest(retention_days, 1) * interval '1 day';
    first timestamptz;
    month name;
    made boolean := false;
    held task.fires[];
    dropped integer := 0;
  BEGIN
    IF retention_days IS NULL THEN RAISE EXCEPTION 'a retention is required'; END IF;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('task.fires', 0)) THEN RETURN 0; END IF;
    FOR ahead IN 2..4 LOOP
      first := date_trunc('month', now()) + ahead * interval '1 month';
      month := 'fires_' || to_char(first, 'YYYY_MM');
      CONTINUE WHEN to_regclass('task.' || month) IS NOT NULL;
      EXECUTE format('CREATE TABLE task.%I (LIKE task.fires INCLUDING DEFAULTS INCLUDING INDEXES)', month);
      EXECUTE format('ALTER TABLE task.fires ATTACH PARTITION task.%I FOR VALUES FROM (%L) TO (%L)',
        month, first, first + interval '1 month');
      made := true;
    END LOOP;
    -- The next run drops: now fires may wait for the default partition that this transaction has locked, and it would wait for them.
    IF made THEN RETURN 0; END IF;
    FOR month, first IN
      SELECT relname, to_date(relname, '"fires_"YYYY_MM') FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
      WHERE inhparent = 'task.fires'::regclass AND relname ~ '^fires_\\d{4}_\\d\\d$' ORDER BY relname
    LOOP
      EXIT WHEN first + interval '1 month' > young;
      -- Reads all triggers, so before anybody has to wait. Triggers only move on.
      EXECUTE format('SELECT array_agg(fire::task.fires) FROM task.triggers AS trigger
        JOIN task.%I AS fire ON fire.facility_id = trigger.facility_id AND fire.scheduled_at >= trigger.next_fire_at
        WHERE trigger.next_fire_at < $1', month) INTO held USING first + interval '1 month';
      EXECUTE format('ALTER TABLE task.fires DETACH PARTITION task.%I', month);
      EXECUTE format('INSERT INTO task.fires
        SELECT * FROM unnest($1) UNION SELECT * FROM task.%I WHERE fired_at >= $2', month) USING held, young;
      EXECUTE format('DROP TABLE task.%I', month);
      dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
  END $$`;

const STATEMENTS = [
  `CREATE TABLE task.fires (LIKE task.trigger_fires INCLUDING DEFAULTS,
    CONSTRAINT fires_pkey PRIMARY KEY (facility_id, scheduled_at)) PARTITION BY RANGE (scheduled_at)`,
  `CREATE INDEX fires_age ON task.fires (fired_at)`,
  // Without another partition, ATTACH neither reads nor copies rows: both tables are locked for a moment
  // only.
  `ALTER TABLE task.fires ATTACH PARTITION task.trigger_fires DEFAULT`,
  KEEP_FIRES,
  `REVOKE ALL ON FUNCTION task.keep_fires(integer) FROM PUBLIC`,
];
