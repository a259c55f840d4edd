import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEXES = {
  setting_history_by_time: '(occurred_at, history_id)',
  setting_history_by_subsystem: '(subsystem_key, occurred_at, history_id)',
  setting_history_by_person: '(person_id, occurred_at, history_id) WHERE person_id IS NOT NULL',
  setting_history_by_user: '(user_id, occurred_at, history_id) WHERE user_id IS NOT NULL',
};

/**
 * Indexes for listing the history and for reading past values. They are built concurrently, without blocking
 * writes.
 */
export class IndexHistory1796400000001 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, definition] of Object.entries(INDEXES))
      await createIndexConcurrently(runner, {
        schema: 'settings',
        table: 'setting_history',
        name,
        definition,
      });
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of Object.keys(INDEXES)) await dropIndexConcurrently(runner, 'settings', name);
  }
}
