import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Finds what a setting held at an instant, however many entries follow. Writes go on while it is built. */
export class IndexPastOfSettings1796500000001 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY runs in no transaction. */
  readonly transaction = false;

  up(runner: QueryRunner): Promise<void> {
    return createIndexConcurrently(runner, {
      schema: 'settings',
      name: 'setting_history_by_setting_time',
      table: 'setting_history',
      definition: '(subsystem_key, setting_key, occurred_at, history_id)',
    });
  }

  down(runner: QueryRunner): Promise<void> {
    return dropIndexConcurrently(runner, 'settings', 'setting_history_by_setting_time');
  }
}
