import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Pauses a message type that the broker refuses, alone. The previous release does not know the table and
 * pauses the whole bus.
 */
export class OutboxPauses1800000007000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE task.outbox_pauses (
        message_type text NOT NULL,
        reason text NOT NULL,
        last_error text NOT NULL,
        paused_at timestamptz NOT NULL DEFAULT now(),
        refusals integer NOT NULL DEFAULT 1,
        probe_size integer NOT NULL DEFAULT 1,
        next_probe_at timestamptz NOT NULL,
        CONSTRAINT outbox_pauses_pkey PRIMARY KEY (message_type)
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE task.outbox_pauses');
  }
}
