import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * An index to find a setting's value at an instant without scanning the later entries. It is built
 * concurrently, without blocking writes.
 */
export class IndexPastOfSettings1796500000001 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
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
