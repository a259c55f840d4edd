import { readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { userNameKey } from '../identity';
import type { IdentityStoreName } from '../identity';
import { byDatabase, unionAll } from '../combined-stores.repository';
import type { IdentityStore } from '../combined-stores.repository';

/** A stored password hash. `accountId` identifies the account within its store. */
export interface StoredPassword {
  store: IdentityStoreName;
  accountId: number;
  hash: string;
}

/** The result of looking up a user name's password. */
export type FoundPassword =
  | { found: true; password: StoredPassword }
  /** No hash to compare with. The reason is for the audit trail only. */
  | { found: false; because: 'unknown user' | 'disabled' | 'no password' };

/** An account as its store returns it. */
interface FoundAccount extends Omit<StoredPassword, 'hash'> {
  hash: string | null;
  disabled: boolean;
}

/** The passwords of all identity stores. Stores in one database share one prepared statement. */
export class StoredPasswordsRepository {
  private readonly statements: readonly (readonly [DataSource, PreparedStatement])[];

  /** @param stores in order of precedence */
  constructor(private readonly stores: readonly IdentityStore[]) {
    this.statements = byDatabase(stores).map((each) => [
      each[0]!.dataSource,
      unionAll('find-password', each, selectPassword),
    ]);
  }

  /**
   * Returns the password of the enabled account with this user name. If several stores have such an account,
   * the first one with a password counts.
   */
  async find(userName: string): Promise<FoundPassword> {
    const parameters = [userNameKey(userName)];
    const found = await Promise.all(
      this.statements.map(([dataSource, statement]) =>
        readPrepared<{ account: FoundAccount }>(dataSource, statement, parameters),
      ),
    );
    const accounts = found.flat().map(({ account }) => account);
    for (const { name } of this.stores) {
      const account = accounts.find((each) => each.store === name && !each.disabled && each.hash !== null);
      if (account === undefined) continue;
      const { store, accountId, hash } = account;
      return { found: true, password: { store, accountId, hash: hash! } };
    }
    return { found: false, because: reasonForNone(accounts) };
  }

  /** Replaces a password hash unless it has changed since it was read. */
  async upgrade({ store, accountId, hash }: StoredPassword, newHash: string): Promise<void> {
    const { dataSource, accounts } = this.stores.find(({ name }) => name === store)!;
    const unchanged = { [accounts.id]: accountId, passwordHash: hash };
    await dataSource.getRepository(accounts.entity).update(unchanged, { passwordHash: newHash });
  }
}

function reasonForNone(
  accounts: readonly FoundAccount[],
): Extract<FoundPassword, { found: false }>['because'] {
  if (accounts.length === 0) return 'unknown user';
  return accounts.every(({ disabled }) => disabled) ? 'disabled' : 'no password';
}

function selectPassword({ name, statements: { account, from, by } }: IdentityStore): string {
  return `SELECT json_build_object('store', '${name}', 'accountId', ${account}, 'hash', password_hash, 'disabled', disabled) AS account
    FROM ${from} WHERE ${by['user-name']} = $1`;
}
