import { queryPrepared, together } from '@platform/database';
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

/** The SQL of one store, so that stores in one database can be asked in one statement. */
export interface StoreStatements {
  /** An expression over `from`: an IdentityRecord as JSON. */
  record: string;
  /** What FROM names. */
  from: string;
  /** The column by which users are asked for. Null: the store does not know users by this. */
  by: Readonly<Record<IdentityQuery['by'], string | null>>;
  /** Columns: `password`, a StoredPassword. The parameter is a folded user name. */
  findPassword: string;
  /** Parameters: account id, the hash that was read, the new hash. */
  upgradePassword: string;
}

/** An identity store in PostgreSQL. */
export abstract class SqlIdentityStore implements IdentityStore {
  readonly find: (query: IdentityQuery) => Promise<IdentityRecord[]>;

  protected constructor(
    readonly name: IdentityStoreName,
    readonly dataSource: DataSource,
    readonly statements: StoreStatements,
  ) {
    this.find = findTogether(dataSource, [this]);
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

/** Finds what the given stores, all behind one connection, know of a user. Look-ups that come together share a round trip. */
export function findTogether(
  dataSource: DataSource,
  stores: readonly SqlIdentityStore[],
): (query: IdentityQuery) => Promise<IdentityRecord[]> {
  const lookUp = (by: IdentityQuery['by']): ((key: UserKey) => Promise<IdentityRecord[]>) =>
    together((keys) => findInStores(dataSource, stores, by, keys));
  const lookUps = {
    'user-name': lookUp('user-name'),
    person: lookUp('person'),
    user: lookUp('user'),
    'windows-account': lookUp('windows-account'),
  };
  return (query) => lookUps[query.by](userKeyOf(query));
}

/** What a column of `StoreStatements.by` holds. */
type UserKey = string | number;

async function findInStores(
  dataSource: DataSource,
  stores: readonly SqlIdentityStore[],
  by: IdentityQuery['by'],
  keys: readonly UserKey[],
): Promise<IdentityRecord[][]> {
  const knowing = stores.filter((store) => store.statements.by[by] !== null);
  if (knowing.length === 0) return keys.map(() => []);
  const statement = unionAll(`find-by-${by}`, knowing, ({ statements }) => selectRecords(statements, by));
  const rows = await queryPrepared<{ asked: string; record: IdentityRecord }>(dataSource, statement, [keys]);
  return keys.map((key) => rows.filter(({ asked }) => asked === String(key)).map(({ record }) => record));
}

function selectRecords({ record, from, by }: StoreStatements, kind: IdentityQuery['by']): string {
  const column = by[kind] ?? '';
  return `SELECT ${column}::text AS asked, ${record} AS record FROM ${from} WHERE ${column} = ANY ($1)`;
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
  textOf: (store: SqlIdentityStore) => string,
): PreparedStatement {
  return {
    // PostgreSQL cuts names off after 63 characters.
    name: `${name}/${stores.map((store) => store.name.split('-')[0]).join('+')}`,
    text: stores.map(textOf).join('\nUNION ALL\n'),
  };
}

function userKeyOf(query: IdentityQuery): UserKey {
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
