import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type {
  IdentityQuery,
  IdentityRecord,
  IdentityStore,
  IdentityStoreName,
  StoredPassword,
} from './identity';
import { userNameKey } from './identity';

/** The SQL of one store. Each look-up has one parameter and one JSON column, so that stores in one database can be asked
 *  in one statement. */
export interface StoreStatements {
  /** Columns: `record`, an IdentityRecord. Null: the store does not know users by this. */
  find: Readonly<Record<IdentityQuery['by'], string | null>>;
  /** Columns: `password`, a StoredPassword. The parameter is a folded user name. */
  findPassword: string;
  /** Parameters: account id, the hash that was read, the new hash. */
  upgradePassword: string;
}

/** An identity store in PostgreSQL. */
export abstract class SqlIdentityStore implements IdentityStore {
  protected constructor(
    readonly name: IdentityStoreName,
    readonly dataSource: DataSource,
    readonly statements: StoreStatements,
  ) {}

  find(query: IdentityQuery): Promise<IdentityRecord[]> {
    return findInStores(this.dataSource, [this], query);
  }

  async findPassword(userName: string): Promise<StoredPassword | null> {
    const [password] = await findPasswordsInStores(this.dataSource, [this], userName);
    return password ?? null;
  }

  async upgradePassword(password: StoredPassword, newHash: string): Promise<void> {
    const { accountId, hash } = password;
    await this.dataSource.query(this.statements.upgradePassword, [accountId, hash, newHash]);
  }
}

/** What the given stores, all behind one connection, know of a user; one round trip. */
export async function findInStores(
  dataSource: DataSource,
  stores: readonly SqlIdentityStore[],
  query: IdentityQuery,
): Promise<IdentityRecord[]> {
  const asked = stores.filter((store) => store.statements.find[query.by] !== null);
  if (asked.length === 0) return [];
  const statement = unionAll(`find-by-${query.by}`, asked, (store) => store.statements.find[query.by]);
  const rows = await queryPrepared<{ record: IdentityRecord }>(dataSource, statement, [parameterOf(query)]);
  return rows.map(({ record }) => record);
}

/** The passwords that the given stores, all behind one connection, hold for a user name; one round trip. */
export async function findPasswordsInStores(
  dataSource: DataSource,
  stores: readonly SqlIdentityStore[],
  userName: string,
): Promise<StoredPassword[]> {
  const statement = unionAll('find-password', stores, (store) => store.statements.findPassword);
  const parameters = [userNameKey(userName)];
  const rows = await queryPrepared<{ password: StoredPassword }>(dataSource, statement, parameters);
  return rows.map(({ password }) => password);
}

/** One statement that asks all of them; the same stores make the same statement. */
function unionAll(
  name: string,
  stores: readonly SqlIdentityStore[],
  textOf: (store: SqlIdentityStore) => string | null,
): PreparedStatement {
  return {
    // PostgreSQL cuts names off after 63 characters.
    name: `${name}/${stores.map((store) => store.name.split('-')[0]).join('+')}`,
    text: stores.map(textOf).join('\nUNION ALL\n'),
  };
}

function parameterOf(query: IdentityQuery): string | number {
  switch (query.by) {
    case 'user-name':
      return userNameKey(query.userName);
    case 'person':
      return query.personId;
    case 'user':
      return query.userId;
    case 'windows-account':
      return query.accountKey;
  }
}
