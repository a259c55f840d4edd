import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

const INDEXES = {
  refresh_family_subject: '(subject, created_at, family_id)',
  refresh_family_user: '(user_id, created_at, family_id) WHERE user_id IS NOT NULL',
};

/**
 * Indexes sessions by owner. Release 1.0.0 created these indexes in Sessions1796100000000, which blocked
 * sign-ins.
 */
export class SessionsByOwner1796520000000 implements MigrationInterface {
  readonly name = 'SessionsByOwner1796520000000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const [name, definition] of Object.entries(INDEXES))
      await createIndexConcurrently(runner, { schema: 'auth', table: 'refresh_family', name, definition });
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const name of Object.keys(INDEXES)) await dropIndexConcurrently(runner, 'auth', name);
  }
}
