import type { MigrationInterface, QueryRunner } from 'typeorm';
import { KEEP_FIRES } from './1800000003000-fires-by-month';

/**
 * Creates and drops the monthly partitions of fires in short steps. A fire that a wrong clock dated into a
 * future month is moved to that month's partition instead of blocking retention for ever. The default
 * partition is checked without blocking writes.
 */
export class FiresInSteps1800000006002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [KEEP_FIRES_STEP, KEEP_FIRES_OF_PREVIOUS_RELEASE, REVOKE])
      await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION task.keep_fires_step(integer, integer, boolean)');
    await runner.query(KEEP_FIRES.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION'));
  }
}

// Runs one step. Returns 'again' if more steps remain, 'dropped' if a month was dropped, 'done' if nothing
// remains or another transaction runs a step. A month becomes a partition in these steps, one transaction
// each:
// - create its table;
// - move the fires dated into it from the default partition, in batches;
// - add a NOT VALID constraint that keeps such fires out of the default partition;
// - validate the constraint, which does not block writes;
// - attach the partition, for which the server need not scan the default partition any more.
//
// Moved fires are invisible until the partition is attached. They are dated at least two months ahead, so
// no reader needs them before.
const KEEP_FIRES_STEP = `
  CREATE FUNCTION task.keep_fires_step(retention_days integer, batch_size integer, drops boolean) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '2s' AS $$
  DECLARE
    young timestamptz := now() - greatest(retention_days, 1) * interval '1 day';
    this_month timestamptz := date_trunc('month', now());
    first timestamptz;
    month name;
    is_validated boolean;
    held task.fires[];
  BEGIN
    IF retention_days IS NULL THEN RAISE EXCEPTION 'a retention is required'; END IF;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('task.fires', 0)) THEN RETURN 'done'; END IF;

    -- A month that was begun and not ended in time: its constraint would keep out fires that are due.
    FOR month, first IN
      SELECT relname, to_date(relname, '"fires_"YYYY_MM') FROM pg_class
      WHERE relnamespace = 'task'::regnamespace AND relkind = 'r' AND NOT relispartition AND relname ~ '^fires_\\d{4}_\\d\\d$'
    LOOP
      CONTINUE WHEN first BETWEEN this_month + interval '2 months' AND this_month + interval '4 months';
      EXECUTE format('ALTER TABLE task.trigger_fires DROP CONSTRAINT IF EXISTS %I', month || '_elsewhere');
      EXECUTE format('INSERT INTO task.fires SELECT * FROM task.%I ON CONFLICT DO NOTHING', month);
      EXECUTE format('DROP TABLE task.%I', month);
      RETURN 'again';
    END LOOP;

    FOR ahead IN 2..4 LOOP
      first := this_month + ahead * interval '1 month';
      month := 'fires_' || to_char(first, 'YYYY_MM');
      CONTINUE WHEN EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass('task.' || month));
      IF to_regclass('task.' || month) IS NULL THEN
        EXECUTE format('CREATE TABLE task.%I (LIKE task.fires INCLUDING DEFAULTS INCLUDING INDEXES,
          CHECK (scheduled_at >= %L AND scheduled_at < %L))', month, first, first + interval '1 month');
      END IF;
      EXECUTE format('WITH moved AS (
          DELETE FROM task.trigger_fires WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM task.trigger_fires WHERE scheduled_at >= $1 AND scheduled_at < $2 LIMIT $3))
          RETURNING *)
        INSERT INTO task.%I SELECT * FROM moved ON CONFLICT DO NOTHING', month)
        USING first, first + interval '1 month', batch_size;
      IF EXISTS (SELECT 1 FROM task.trigger_fires WHERE scheduled_at >= first AND scheduled_at < first + interval '1 month') THEN
        RETURN 'again';
      END IF;
      is_validated := (SELECT convalidated FROM pg_constraint
        WHERE conrelid = 'task.trigger_fires'::regclass AND conname = month || '_elsewhere');
      IF is_validated IS NULL THEN
        EXECUTE format('ALTER TABLE task.trigger_fires ADD CONSTRAINT %I CHECK (scheduled_at < %L OR scheduled_at >= %L) NOT VALID',
          month || '_elsewhere', first, first + interval '1 month');
      ELSIF NOT is_validated THEN
        BEGIN
          EXECUTE format('ALTER TABLE task.trigger_fires VALIDATE CONSTRAINT %I', month || '_elsewhere');
        EXCEPTION WHEN check_violation THEN
          -- Written after the last look and before the constraint. It is moved first.
          EXECUTE format('ALTER TABLE task.trigger_fires DROP CONSTRAINT %I', month || '_elsewhere');
        END;
      ELSE
        EXECUTE format('ALTER TABLE task.fires ATTACH PARTITION task.%I FOR VALUES FROM (%L) TO (%L)',
          month, first, first + interval '1 month');
        EXECUTE format('ALTER TABLE task.trigger_fires DROP CONSTRAINT %I', month || '_elsewhere');
      END IF;
      RETURN 'again';
    END LOOP;

    IF NOT drops THEN RETURN 'done'; END IF;
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
      RETURN 'dropped';
    END LOOP;
    RETURN 'done';
  END $$`;

// Runs all steps in one transaction, for the previous release. Drops no month once it has locked the default
// partition: fires may be waiting for that lock, and the drop would wait for those fires.
const KEEP_FIRES_OF_PREVIOUS_RELEASE = `
  CREATE OR REPLACE FUNCTION task.keep_fires(retention_days integer) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' SET lock_timeout = '2s' AS $$
  DECLARE
    made boolean := false;
    step text;
    dropped integer := 0;
  BEGIN
    LOOP
      step := task.keep_fires_step(retention_days, 10000, NOT made);
      EXIT WHEN step = 'done';
      IF step = 'dropped' THEN dropped := dropped + 1; ELSE made := true; END IF;
    END LOOP;
    RETURN dropped;
  END $$`;

const REVOKE = `REVOKE ALL ON FUNCTION task.keep_fires_step(integer, integer, boolean) FROM PUBLIC`;
