import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEXES = {
  setting_history_by_time: '(occurred_at, history_id)',
  setting_history_by_subsystem: '(subsystem_key, occurred_at, history_id)',
  setting_history_by_person: '(person_id, occurred_at, history_id) WHERE person_id IS NOT NULL',
  setting_history_by_user: '(user_id, occurred_at, history_id) WHERE user_id IS NOT NULL',
};

/** For the history of all settings, and for the past. Writes wait while the indexes are made: some seconds for a million entries. */
export class IndexHistory1796400000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    for (const [name, columns] of Object.entries(INDEXES))
      await runner.query(`CREATE INDEX ${name} ON settings.setting_history ${columns}`);
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of Object.keys(INDEXES)) await runner.query(`DROP INDEX settings.${name}`);
  }
}
