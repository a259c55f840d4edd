import { batched, queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { IdentityQuery, IdentityRecord, IdentityStoreName, StoredPassword } from './identity';
import { userNameKey } from './identity';
import type { StoreAccount } from './identity-stores.entity';

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
}

/** One family of legacy identities. An absent user is an empty list; an outage throws, so that it can never be mistaken for "no such
 *  user". */
export abstract class IdentityStoreRepository {
  constructor(readonly dataSource: DataSource) {}

  abstract readonly name: IdentityStoreName;
  abstract readonly statements: StoreStatements;

  /** The table of accounts, and the property that `StoredPassword.accountId` is. */
  abstract readonly accounts: { entity: new () => StoreAccount; id: string };

  /** Replaces a password hash unless it has changed since it was read. */
  async upgradePassword({ accountId, hash }: StoredPassword, newHash: string): Promise<void> {
    const unchanged = { [this.accounts.id]: accountId, passwordHash: hash };
    await this.dataSource.getRepository(this.accounts.entity).update(unchanged, { passwordHash: newHash });
  }
}

/** Stores behind one connection pool. */
interface StoreGroup {
  /** Records that match; more than one of a store means that the store itself cannot tell who is meant. */
  find: (query: IdentityQuery) => Promise<IdentityRecord[]>;
  findPasswords: (userName: string) => Promise<StoredPassword[]>;
}

/** All identity stores as one. Stores in one database are asked in one prepared statement, and look-ups that come at the same moment share
 *  it: every token costs a look-up of its user, and a round trip for each store would be most of that cost. */
export class IdentityStoresRepository {
  private readonly groups: readonly StoreGroup[];
  private readonly singles: ReadonlyMap<IdentityStoreName, StoreGroup>;
  private readonly order: readonly IdentityStoreName[];

  /** @param stores in the order in which they are asked: the first that knows a name gives it */
  constructor(private readonly stores: readonly IdentityStoreRepository[]) {
    const dataSources = [...new Set(stores.map((store) => store.dataSource))];
    this.groups = dataSources.map((each) => groupOf(stores.filter(({ dataSource }) => dataSource === each)));
    this.singles = new Map(stores.map((store) => [store.name, groupOf([store])]));
    this.order = stores.map((store) => store.name);
  }

  /** What all stores know of a user, in the order of the stores. */
  async find(query: IdentityQuery): Promise<IdentityRecord[]> {
    const found = await Promise.all(this.groups.map((group) => group.find(query)));
    return this.inOrder(found.flat());
  }

  /** What one store knows of a user. */
  findIn(storeName: IdentityStoreName, query: IdentityQuery): Promise<IdentityRecord[]> {
    return this.singles.get(storeName)!.find(query);
  }

  /** The password of the enabled account with this user name in the first store that has one, or null. */
  async findPassword(userName: string): Promise<StoredPassword | null> {
    const found = await Promise.all(this.groups.map((group) => group.findPasswords(userName)));
    return this.inOrder(found.flat())[0] ?? null;
  }

  /** Replaces a password hash unless it has changed since it was read. */
  upgradePassword(password: StoredPassword, newHash: string): Promise<void> {
    return this.stores.find(({ name }) => name === password.store)!.upgradePassword(password, newHash);
  }

  /** Sorts by the order of the stores. */
  inOrder<T extends { store: IdentityStoreName }>(found: readonly T[]): T[] {
    return found.toSorted((one, other) => this.order.indexOf(one.store) - this.order.indexOf(other.store));
  }
}

/** @param stores one or more, all behind one connection pool */
function groupOf(stores: readonly IdentityStoreRepository[]): StoreGroup {
  const lookUp = (by: IdentityQuery['by']): ((key: UserKey) => Promise<IdentityRecord[]>) =>
    batched((keys) => findRecords(stores, by, keys));
  const lookUps = {
    'user-name': lookUp('user-name'),
    person: lookUp('person'),
    user: lookUp('user'),
    'windows-account': lookUp('windows-account'),
  };
  return {
    find: (query) => lookUps[query.by](userKeyOf(query)),
    findPasswords: (userName) => findPasswords(stores, userName),
  };
}

/** What a column of `StoreStatements.by` holds. */
type UserKey = string | number;

async function findRecords(
  stores: readonly IdentityStoreRepository[],
  by: IdentityQuery['by'],
  keys: readonly UserKey[],
): Promise<IdentityRecord[][]> {
  const knowing = stores.filter((store) => store.statements.by[by] !== null);
  if (knowing[0] === undefined) return keys.map(() => []);
  const statement = unionAll(`find-by-${by}`, knowing, ({ statements: { record, from, by: columns } }) => {
    const column = columns[by] ?? '';
    return `SELECT ${column}::text AS asked, ${record} AS record FROM ${from} WHERE ${column} = ANY ($1)`;
  });
  const rows = await queryPrepared<{ asked: string; record: IdentityRecord }>(
    knowing[0].dataSource,
    statement,
    [keys],
  );
  return keys.map((key) => rows.filter(({ asked }) => asked === String(key)).map(({ record }) => record));
}

async function findPasswords(
  stores: readonly IdentityStoreRepository[],
  userName: string,
): Promise<StoredPassword[]> {
  const statement = unionAll('find-password', stores, ({ statements }) => statements.findPassword);
  const parameters = [userNameKey(userName)];
  const rows = await queryPrepared<{ password: StoredPassword }>(
    stores[0]!.dataSource,
    statement,
    parameters,
  );
  return rows.map(({ password }) => password);
}

/** One statement that asks all of them; the same stores make the same statement. */
function unionAll(
  name: string,
  stores: readonly IdentityStoreRepository[],
  textOf: (store: IdentityStoreRepository) => string,
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
