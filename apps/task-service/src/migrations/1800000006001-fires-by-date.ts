import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds the fires of a month that becomes a partition, without reading the whole default partition. */
export class FiresByDate1800000006001 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY, which does not block writes, cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    // An interrupted attempt leaves an invalid index.
    await runner.query('DROP INDEX CONCURRENTLY IF EXISTS task.trigger_fires_by_date');
    await runner.query(
      'CREATE INDEX CONCURRENTLY trigger_fires_by_date ON task.trigger_fires USING brin (scheduled_at)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP INDEX task.trigger_fires_by_date');
  }
}
