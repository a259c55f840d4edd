import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Maps Windows accounts to internal users, one to one and by name of account: a name that happens to be equal is no mapping. */
export class AddWindowsAccount1764100000200 implements MigrationInterface {
  readonly name = 'AddWindowsAccount1764100000200';

  async up(runner: QueryRunner): Promise<void> {
    // `<folded user name>@<realm>`, folded by the application like user_name_key.
    await runner.query(`
      ALTER TABLE internal_legacy.internal_user ADD COLUMN windows_account_key text COLLATE "C" UNIQUE
        CHECK (windows_account_key ~ '^[^@]+@[^@]+$')`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`ALTER TABLE internal_legacy.internal_user DROP COLUMN windows_account_key`);
  }
}
