import { Inject, Injectable } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type {
  IdentityQuery,
  IdentityRecord,
  IdentityStore,
  IdentityStoreName,
  StoredPassword,
} from './identity';
import { SqlIdentityStore, findPasswordsInStores, findTogether } from './sql-identity.store';

/** Injection token of the identity stores, in the order in which they are asked. */
export const IDENTITY_STORES = Symbol('identity stores');

/** Stores that can be asked together. */
interface StoreGroup {
  find(query: IdentityQuery): Promise<IdentityRecord[]>;
  findPasswords(userName: string): Promise<StoredPassword[]>;
}

/** All identity stores as one. Stores in one database are asked in one statement: every token costs a look-up of its user, and
 *  a round trip for each store would be most of that cost. */
@Injectable()
export class IdentityDirectory {
  private readonly groups: readonly StoreGroup[];
  private readonly order: readonly IdentityStoreName[];

  constructor(@Inject(IDENTITY_STORES) private readonly stores: readonly IdentityStore[]) {
    this.groups = groupStores(stores);
    this.order = stores.map((store) => store.name);
  }

  /** What all stores know of a user, in the order of the stores. */
  async find(query: IdentityQuery): Promise<IdentityRecord[]> {
    const answers = await Promise.all(this.groups.map((group) => group.find(query)));
    return this.inOrder(answers.flat());
  }

  /** What one store knows of a user. */
  findIn(storeName: IdentityStoreName, query: IdentityQuery): Promise<IdentityRecord[]> {
    return this.get(storeName).find(query);
  }

  /** The password of the first store that has one for this user name, or null. */
  async findPassword(userName: string): Promise<StoredPassword | null> {
    const answers = await Promise.all(this.groups.map((group) => group.findPasswords(userName)));
    return this.inOrder(answers.flat())[0] ?? null;
  }

  upgradePassword(password: StoredPassword, newHash: string): Promise<void> {
    return this.get(password.store).upgradePassword(password, newHash);
  }

  private get(storeName: IdentityStoreName): IdentityStore {
    const store = this.stores.find((each) => each.name === storeName);
    if (store === undefined) throw new Error(`there is no identity store ${storeName}`);
    return store;
  }

  /** Sorts by the order of the stores: the first that knows a name gives it, however it was found. */
  inOrder<T extends { store: IdentityStoreName }>(answers: readonly T[]): T[] {
    return answers.toSorted((one, other) => this.order.indexOf(one.store) - this.order.indexOf(other.store));
  }
}

function groupStores(stores: readonly IdentityStore[]): StoreGroup[] {
  const together = new Map<DataSource, SqlIdentityStore[]>();
  const groups: StoreGroup[] = [];
  for (const store of stores) {
    if (!(store instanceof SqlIdentityStore)) groups.push(single(store));
    else together.set(store.dataSource, [...(together.get(store.dataSource) ?? []), store]);
  }
  for (const [dataSource, members] of together) {
    groups.push({
      find: findTogether(dataSource, members),
      findPasswords: (userName) => findPasswordsInStores(dataSource, members, userName),
    });
  }
  return groups;
}

function single(store: IdentityStore): StoreGroup {
  return {
    find: (query) => store.find(query),
    findPasswords: async (userName) => {
      const password = await store.findPassword(userName);
      return password === null ? [] : [password];
    },
  };
}
