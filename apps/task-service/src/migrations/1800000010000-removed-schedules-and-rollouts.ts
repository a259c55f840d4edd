import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Adds the instant at which a schedule was removed, and the progress of a calendar rollout. Release 1.0.0
 * knows neither: it removes schedules without the instant, which the purge then fills in, and stores all
 * generation requests of a changed calendar in one transaction.
 */
export class RemovedSchedulesAndRollouts1800000010000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE task.schedules ADD removed_at timestamptz(3)');
    await runner.query(`
      CREATE TABLE task.calendar_rollouts (
        calendar_id uuid NOT NULL,
        after_facility_id bigint NOT NULL,
        changed_at timestamptz(3) NOT NULL,
        stepped_at timestamptz(3) NOT NULL DEFAULT now(),
        CONSTRAINT calendar_rollouts_pkey PRIMARY KEY (calendar_id),
        CONSTRAINT calendar_rollouts_calendar_id_fkey FOREIGN KEY (calendar_id) REFERENCES task.calendars ON DELETE CASCADE
      )`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE task.calendar_rollouts');
    await runner.query('ALTER TABLE task.schedules DROP removed_at');
  }
}
