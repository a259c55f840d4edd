import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Schedules and the instances generated from them. */
export class Tasks1800000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE task.schedules (
        schedule_id uuid PRIMARY KEY,
        facility_id bigint NOT NULL CHECK (facility_id > 0),
        name text NOT NULL,
        description text,
        schedule text NOT NULL,
        time_zone text NOT NULL,
        start_date text,
        template text CHECK (template IS NULL OR template::json IS NOT NULL),
        status text NOT NULL DEFAULT 'Active' CHECK (status IN ('Active', 'Paused', 'Removed')),
        generated_until timestamptz(3) NOT NULL,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        created_by_subject text NOT NULL,
        created_by_person_id bigint,
        created_by_name text,
        created_by_persona smallint NOT NULL,
        idempotency_key text,
        request_digest text NOT NULL
      )`);
    await runner.query(`
      CREATE UNIQUE INDEX schedules_idempotency ON task.schedules (created_by_subject, idempotency_key)
        WHERE idempotency_key IS NOT NULL`);
    await runner.query(
      `CREATE INDEX schedules_by_facility ON task.schedules (facility_id, created_at, schedule_id)`,
    );
    await runner.query(`CREATE INDEX schedules_by_creation ON task.schedules (created_at, schedule_id)`);
    await runner.query(`
      CREATE TABLE task.instances (
        task_instance_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
        schedule_id uuid NOT NULL REFERENCES task.schedules,
        facility_id bigint NOT NULL,
        name text NOT NULL,
        due_at timestamptz(3) NOT NULL,
        status text NOT NULL DEFAULT 'Pending' CHECK (status IN ('Pending', 'Completed', 'Cancelled')),
        completed_at timestamptz(3),
        completed_by_person_id bigint,
        completed_by_name text,
        completed_by_persona smallint,
        notes text,
        created_at timestamptz(3) NOT NULL DEFAULT now(),
        CONSTRAINT instances_occurrence UNIQUE (schedule_id, due_at),
        CONSTRAINT instances_completion CHECK ((status = 'Completed') = (completed_at IS NOT NULL))
      )`);
    await runner.query(
      `CREATE INDEX instances_by_facility ON task.instances (facility_id, due_at, task_instance_id)`,
    );
    await runner.query(`CREATE INDEX instances_by_due ON task.instances (due_at, task_instance_id)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE task.instances, task.schedules`);
  }
}
