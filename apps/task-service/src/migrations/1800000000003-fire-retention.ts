import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds old fires without reading the young ones. */
export class FireRetention1800000000003 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`CREATE INDEX trigger_fires_age ON task.trigger_fires (fired_at)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP INDEX task.trigger_fires_age`);
  }
}
