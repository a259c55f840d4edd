import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The clustered scheduler's trigger store, and how far business-unit changes have been applied to it. */
export class Scheduler1800000000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE task.triggers (
        facility_id bigint PRIMARY KEY CHECK (facility_id > 0),
        trigger_name text NOT NULL,
        trigger_group text NOT NULL,
        job_name text NOT NULL,
        schedule text NOT NULL,
        time_zone text NOT NULL,
        state text NOT NULL DEFAULT 'WAITING' CHECK (state IN ('WAITING', 'PAUSED', 'ERROR')),
        next_fire_at timestamptz(3) NOT NULL,
        previous_fire_at timestamptz(3),
        paused_at timestamptz(3),
        error text,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        updated_at timestamptz(3) NOT NULL DEFAULT now(),
        CONSTRAINT triggers_identity UNIQUE (trigger_group, trigger_name)
      )`);
    await runner.query(`
      CREATE INDEX triggers_due ON task.triggers (next_fire_at, facility_id) WHERE state = 'WAITING'`);
    // The primary key is what makes an occurrence fire once, whatever replicas and restarts do.
    await runner.query(`
      CREATE TABLE task.trigger_fires (
        facility_id bigint NOT NULL,
        scheduled_at timestamptz(3) NOT NULL,
        fired_at timestamptz(3) NOT NULL DEFAULT now(),
        misfired boolean NOT NULL,
        missed_count integer NOT NULL,
        message_id uuid NOT NULL,
        PRIMARY KEY (facility_id, scheduled_at)
      )`);
    await runner.query(`
      CREATE TABLE task.business_unit_changes (
        business_unit_id bigint PRIMARY KEY,
        event_id uuid NOT NULL,
        change_type text NOT NULL,
        occurred_at timestamptz NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE task.business_unit_changes, task.trigger_fires, task.triggers`);
  }
}
