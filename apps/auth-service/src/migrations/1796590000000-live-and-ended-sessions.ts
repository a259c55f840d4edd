import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const NEW = {
  refresh_family_live_subject:
    '(subject, created_at, family_id) WHERE subject IS NOT NULL AND revoked_at IS NULL',
  refresh_family_live_user:
    '(user_id, created_at, family_id) WHERE user_id IS NOT NULL AND revoked_at IS NULL',
  refresh_family_ended: '(subject, application_key, revoked_at) WHERE revoked_at IS NOT NULL',
};
const OLD = {
  refresh_family_subject: '(subject, created_at, family_id)',
  refresh_family_user: '(user_id, created_at, family_id) WHERE user_id IS NOT NULL',
};

/**
 * Replaces the indexes of a user's sessions, so that live sessions are found quickly however many have ended.
 * Release 1.0.0 never searches for ended sessions. `subject IS NOT NULL` is always true. Without it, a plan
 * cached while the tables are small would read the whole index to find the session of a token.
 */
export class LiveAndEndedSessions1796590000000 implements MigrationInterface {
  readonly name = 'LiveAndEndedSessions1796590000000';
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await replace(runner, NEW, OLD);
  }

  async down(runner: QueryRunner): Promise<void> {
    await replace(runner, OLD, NEW);
  }
}

async function replace(
  runner: QueryRunner,
  made: Readonly<Record<string, string>>,
  dropped: Readonly<Record<string, string>>,
): Promise<void> {
  for (const [name, definition] of Object.entries(made))
    await createIndexConcurrently(runner, { schema: 'auth', table: 'refresh_family', name, definition });
  for (const name of Object.keys(dropped)) await dropIndexConcurrently(runner, 'auth', name);
}
