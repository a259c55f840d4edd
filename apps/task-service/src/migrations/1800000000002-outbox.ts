import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The outbox: events wait here, in the transaction that caused them, until the broker has confirmed them. */
export class Outbox1800000000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE task.outbox (
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
      )`);
    // Rows come and go all day: vacuum early, or the dead ones slow the partitions down.
    await runner.query(`
      ALTER TABLE task.outbox SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000)`);
    // Both stay tiny: only refused and parked events are in them.
    await runner.query(`
      CREATE INDEX outbox_refused ON task.outbox (partition, facility_id, message_type, sequence)
        WHERE parked_at IS NULL AND attempts > 0`);
    await runner.query(`CREATE INDEX outbox_parked ON task.outbox (parked_at) WHERE parked_at IS NOT NULL`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE task.outbox`);
  }
}
