import { readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { userNameKey } from '../identity';
import type { IdentityStoreName } from '../identity';
import { byDatabase, unionAll } from '../identity-stores.repository';
import type { IdentityStoreRepository } from '../identity-stores.repository';

/** A password as a store keeps it. `accountId` identifies the account within its store. */
export interface StoredPassword {
  store: IdentityStoreName;
  accountId: number;
  hash: string;
}

/** The passwords of all identity stores. Stores in one database are asked in one prepared statement. */
export class StoredPasswordsRepository {
  private readonly questions: readonly (readonly [DataSource, PreparedStatement])[];

  /** @param stores in the order in which they are asked */
  constructor(private readonly stores: readonly IdentityStoreRepository[]) {
    this.questions = byDatabase(stores).map((each) => [
      each[0]!.dataSource,
      unionAll('find-password', each, selectPassword),
    ]);
  }

  /** The password of the enabled account with this user name in the first store that has one, or null. */
  async find(userName: string): Promise<StoredPassword | null> {
    const parameters = [userNameKey(userName)];
    const found = await Promise.all(
      this.questions.map(([dataSource, statement]) =>
        readPrepared<{ password: StoredPassword }>(dataSource, statement, parameters),
      ),
    );
    const passwords = new Map(found.flat().map(({ password }) => [password.store, password]));
    const first = this.stores.find(({ name }) => passwords.has(name));
    return first === undefined ? null : passwords.get(first.name)!;
  }

  /** Replaces a password hash unless it has changed since it was read. */
  async upgrade({ store, accountId, hash }: StoredPassword, newHash: string): Promise<void> {
    const { dataSource, accounts } = this.stores.find(({ name }) => name === store)!;
    const unchanged = { [accounts.id]: accountId, passwordHash: hash };
    await dataSource.getRepository(accounts.entity).update(unchanged, { passwordHash: newHash });
  }
}

function selectPassword({ name, statements: { account, from, by } }: IdentityStoreRepository): string {
  return `SELECT json_build_object('store', '${name}', 'accountId', ${account}, 'hash', password_hash) AS password
    FROM ${from} WHERE ${by['user-name']} = $1 AND password_hash IS NOT NULL AND NOT disabled`;
}
