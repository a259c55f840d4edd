import { createIndexConcurrently, dropIndexConcurrently } from '@platform/database';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Marks revocations whose timely commit is not yet confirmed. Release 1.0.0 does not write the column, so its
 * rows count as confirmed.
 */
export class ConfirmRevocations1796530000000 implements MigrationInterface {
  readonly name = 'ConfirmRevocations1796530000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.revocations ADD COLUMN confirmed boolean NOT NULL DEFAULT true`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE auth.revocations DROP COLUMN confirmed`);
  }
}

const INDEXES = [
  {
    name: 'revocation_unconfirmed',
    table: 'revocation',
    definition: '(revocation_date) WHERE NOT confirmed',
  },
  {
    name: 'session_revocation_unconfirmed',
    table: 'session_revocation',
    definition: '(revocation_date) WHERE NOT confirmed',
  },
  // Counts a caller's revocations of its own tokens.
  {
    name: 'revocation_of_own',
    table: 'revocation',
    definition: '(revoked_by_subject, revocation_date) WHERE own',
  },
];

/** Creates indexes on possibly large tables, while the service writes. */
export class IndexUnconfirmed1796530000100 implements MigrationInterface {
  readonly name = 'IndexUnconfirmed1796530000100';
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    for (const index of INDEXES) await createIndexConcurrently(runner, { schema: 'auth', ...index });
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { name } of INDEXES) await dropIndexConcurrently(runner, 'auth', name);
  }
}
