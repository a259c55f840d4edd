import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Finds the fires dated into a month that is to become a table of its own without reading all of the default
 * partition.
 */
export class FiresByDate1800000006001 implements MigrationInterface {
  /** An index that is built without keeping anybody from writing cannot be built in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // What an attempt that was broken off has left is not valid.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS task.trigger_fires_by_date');
    await runner.query(
      'CREATE INDEX CONCURRENTLY trigger_fires_by_date ON task.trigger_fires USING brin (scheduled_at)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX task.trigger_fires_by_date');
  }
}
