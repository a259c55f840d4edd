import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Creates the tables of schedules, instances, triggers and the outbox. */
export class TaskTables1800000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...TASKS, ...SCHEDULER, ...OUTBOX]) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP TABLE task.outbox, task.business_unit_changes, task.trigger_fires, task.triggers, task.instances, task.schedules`);
  }
}

const TASKS = [
  `CREATE TABLE task.schedules (
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
  )`,
  `CREATE UNIQUE INDEX schedules_idempotency ON task.schedules (created_by_subject, idempotency_key)
    WHERE idempotency_key IS NOT NULL`,
  `CREATE INDEX schedules_by_facility ON task.schedules (facility_id, created_at, schedule_id)`,
  // Lets a list by status read only the entries of its page.
  `CREATE INDEX schedules_by_status ON task.schedules (status, created_at, schedule_id)`,
  `CREATE TABLE task.instances (
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
  )`,
  `CREATE INDEX instances_by_status ON task.instances (status, due_at, task_instance_id)`,
  `CREATE INDEX instances_by_facility_status ON task.instances (facility_id, status, due_at, task_instance_id)`,
];

const SCHEDULER = [
  // A fire updates the indexed `next_fire_at`. The fillfactor leaves room for the new row version in the same
  // page.
  `CREATE TABLE task.triggers (
    facility_id bigint PRIMARY KEY CHECK (facility_id > 0),
    trigger_name text NOT NULL,
    trigger_group text NOT NULL,
    job_name text NOT NULL,
    schedule text NOT NULL,
    time_zone text NOT NULL,
    state text NOT NULL DEFAULT 'WAITING' CHECK (state IN ('WAITING', 'PAUSED', 'ERROR')),
    next_fire_at timestamptz(3) NOT NULL,
    previous_fire_at timestamptz(3),
    error text,
    origin_trace text
  ) WITH (fillfactor = 80)`,
  `CREATE INDEX triggers_due ON task.triggers (next_fire_at, facility_id) WHERE state = 'WAITING'`,
  // Counts failed triggers without reading the others.
  `CREATE INDEX triggers_failed ON task.triggers (facility_id) WHERE state = 'ERROR'`,
  // The primary key makes each occurrence fire once, across replicas and restarts.
  `CREATE TABLE task.trigger_fires (
    facility_id bigint NOT NULL,
    scheduled_at timestamptz(3) NOT NULL,
    fired_at timestamptz(3) NOT NULL DEFAULT now(),
    misfired boolean NOT NULL,
    missed_count integer NOT NULL,
    message_id uuid NOT NULL,
    PRIMARY KEY (facility_id, scheduled_at)
  )`,
  // Finds old fires without reading recent ones.
  `CREATE INDEX trigger_fires_age ON task.trigger_fires (fired_at)`,
  `CREATE TABLE task.business_unit_changes (
    business_unit_id bigint PRIMARY KEY,
    event_id uuid NOT NULL,
    change_type text NOT NULL,
    occurred_at timestamptz NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`,
];

const OUTBOX = [
  // Rows are inserted and deleted all day: vacuum early, because dead rows slow down the reads of a
  // partition.
  `CREATE TABLE task.outbox (
    partition smallint NOT NULL CHECK (partition BETWEEN 0 AND 15),
    sequence bigint GENERATED ALWAYS AS IDENTITY,
    facility_id bigint NOT NULL,
    message_id uuid NOT NULL,
    message_type text NOT NULL,
    conversation_id text,
    sent_at timestamptz(3) NOT NULL,
    trace_headers json NOT NULL,
    message json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    last_error text,
    parked_at timestamptz,
    PRIMARY KEY (partition, sequence)
  ) WITH (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)`,
  // Both indexes stay small: they contain only refused and parked events.
  `CREATE INDEX outbox_refused ON task.outbox (partition, facility_id, message_type, sequence)
    WHERE parked_at IS NULL AND attempts > 0`,
  `CREATE INDEX outbox_parked ON task.outbox (parked_at) WHERE parked_at IS NOT NULL`,
];
