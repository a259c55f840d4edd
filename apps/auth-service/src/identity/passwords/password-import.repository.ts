import type { DataSource } from 'typeorm';
import type { Store } from '../identity';
import { InternalUser, Person, Technician } from '../identity-stores.entity';

const ACCOUNTS = { PERSON_DIRECTORY: Person, INTERNAL_LEGACY: InternalUser, SERVICE_PROVIDERS: Technician };

/** The password hashes of one store. Needs the role that owns the store's tables. */
export class PasswordImportRepository {
  private readonly table: string;

  constructor(
    private readonly dataSource: DataSource,
    store: Store,
  ) {
    this.table = dataSource.getMetadata(ACCOUNTS[store]).tablePath;
  }

  /** Finds the accounts that exist, and whether each has a password. @param userNameKeys folded */
  async find(userNameKeys: readonly string[]): Promise<Map<string, boolean>> {
    const rows = await this.dataSource.query<{ key: string; has: boolean }[]>(
      `SELECT user_name_key AS key, password_hash IS NOT NULL AS has FROM ${this.table} WHERE user_name_key = ANY ($1)`,
      [userNameKeys],
    );
    return new Map(rows.map(({ key, has }) => [key, has]));
  }

  /** Sets password hashes. An account that already has a password keeps it, unless `replace`. */
  async write(hashes: readonly { userNameKey: string; hash: string }[], replace: boolean): Promise<void> {
    // Hand-written SQL: one statement for a batch. The condition is in the UPDATE, because a concurrent login
    // may upgrade a hash.
    await this.dataSource.query(
      `UPDATE ${this.table} AS account SET password_hash = imported.hash
       FROM jsonb_to_recordset($1::jsonb) AS imported("userNameKey" text, hash text)
       WHERE account.user_name_key = imported."userNameKey" AND ($2 OR account.password_hash IS NULL)`,
      [JSON.stringify(hashes), replace],
    );
  }
}
