import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Adds changes of schedules, cancellation of instances, calendars, and jitter of triggers. */
export class ScheduleLifecycle1800000001000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE task.released_instances`);
    await runner.query(`ALTER TABLE task.triggers DROP jitter_seconds`);
    await runner.query(`ALTER TABLE task.instances DROP template, DROP cancelled_at, DROP cancelled_by_person_id,
      DROP cancelled_by_name, DROP cancelled_by_persona, DROP cancellation_cause, DROP cancellation_reason`);
    await runner.query(
      `ALTER TABLE task.schedules DROP revision, DROP end_date, DROP calendar_id, DROP calendar_revision`,
    );
    await runner.query(`DROP TABLE task.calendars`);
  }
}

const STATEMENTS = [
  `CREATE TABLE task.calendars (
    calendar_id uuid PRIMARY KEY,
    name text NOT NULL,
    excluded_dates text[] NOT NULL,
    revision bigint NOT NULL DEFAULT 1,
    changed_at timestamptz(3) NOT NULL DEFAULT now()
  )`,
  `ALTER TABLE task.schedules
    ADD revision bigint NOT NULL DEFAULT 1,
    ADD end_date text,
    ADD calendar_id uuid CONSTRAINT schedules_calendar_id_fkey REFERENCES task.calendars,
    ADD calendar_revision bigint`,
  `ALTER TABLE task.instances
    ADD template text,
    ADD cancelled_at timestamptz(3),
    ADD cancelled_by_person_id bigint,
    ADD cancelled_by_name text,
    ADD cancelled_by_persona smallint,
    ADD cancellation_cause text,
    ADD cancellation_reason text`,
  // Cancelled instances that no longer occupy their instant. Through inheritance every reader of
  // task.instances sees them, the previous release included, while the parent's unique key still allows one
  // instance per instant. A partial unique index would not work: the previous release names the full key in
  // ON CONFLICT.
  `CREATE TABLE task.released_instances (PRIMARY KEY (task_instance_id)) INHERITS (task.instances)`,
  `CREATE INDEX released_instances_by_schedule ON task.released_instances (schedule_id, due_at)`,
  `CREATE INDEX released_instances_by_status ON task.released_instances (status, due_at, task_instance_id)`,
  `CREATE INDEX released_instances_by_facility_status
    ON task.released_instances (facility_id, status, due_at, task_instance_id)`,
  `ALTER TABLE task.triggers ADD jitter_seconds integer NOT NULL DEFAULT 0`,
];
