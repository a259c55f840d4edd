import { batched, listParameter, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { IdentityQuery, IdentityRecord, IdentityStoreName, Resolution } from './identity';
import { userNameKey } from './identity';
import type { StoreAccount } from './identity-stores.entity';
import { mergeIdentities } from './merge-identities';
import type { ExplicitIdentifiers } from './merge-identities';

/** The SQL of one store, so that stores in one database can be asked in one statement. */
export interface StoreStatements {
  /** An expression over `from`: an IdentityRecord as JSON. */
  record: string;
  /** What FROM names: the table of accounts. */
  from: string;
  /** The column that identifies an account. */
  account: string;
  /** What other stores' links to an account are: its person or its user. Null: nothing refers to it. */
  names: 'person' | 'user' | null;
  /** The column by which users are asked for. Null: the store does not know users by this. */
  by: Readonly<Record<IdentityQuery['by'], string | null>>;
}

/**
 * One family of legacy identities. An absent user is an empty list; an outage throws, so that it can never be
 * mistaken for "no such user".
 */
export abstract class IdentityStoreRepository {
  constructor(readonly dataSource: DataSource) {}

  abstract readonly name: IdentityStoreName;
  abstract readonly statements: StoreStatements;

  /** The table of accounts, and the property that identifies one. */
  abstract readonly accounts: { entity: new () => StoreAccount; id: string };
}

/**
 * Asks the stores behind one connection pool for the records that match; more than one of a store means that
 * the store itself cannot tell who is meant.
 */
type StoreGroup = (query: IdentityQuery) => Promise<FoundRecord[]>;

/**
 * A record, and whether others of the group name it by its own identifier; null: whoever does was found too.
 */
interface FoundRecord {
  record: IdentityRecord;
  isReferred: boolean | null;
}

/**
 * All identity stores as one. Stores in one database are asked in one prepared statement, and look-ups that
 * come at the same moment share it: every token costs a look-up of its user, and a round trip for each store
 * would be most of that cost.
 */
export class IdentityStoresRepository {
  private readonly groups: readonly StoreGroup[];
  private readonly order: readonly IdentityStoreName[];

  /** @param stores in the order in which they are asked: the first that knows a name gives it */
  constructor(stores: readonly IdentityStoreRepository[]) {
    this.groups = byDatabase(stores).map(groupOf);
    this.order = stores.map((store) => store.name);
  }

  /** Who a user is. An outage of any store throws: half an identity is never issued. */
  async resolve(query: IdentityQuery, explicit: ExplicitIdentifiers = {}): Promise<Resolution> {
    return mergeIdentities(await this.find(query), explicit);
  }

  /**
   * What all stores know of a user, in the order of the stores: the records that match, and all that links
   * lead to from there, so that one person's records are the same whichever of them was asked for. Most users
   * have no links and cost one round trip.
   */
  async find(query: IdentityQuery): Promise<IdentityRecord[]> {
    const first = await Promise.all(this.groups.map((group) => group(query)));
    const [only, ...others] = first.flat();
    if (only !== undefined && others.length === 0 && this.groups.length === 1 && isComplete(only, query))
      return [only.record];
    return this.followLinks(query, first);
  }

  /** @param answers of all groups to the query */
  private async followLinks(query: IdentityQuery, answers: FoundRecord[][]): Promise<IdentityRecord[]> {
    const found = new Map<string, IdentityRecord>();
    // By group: the identifiers under which it has nothing more to give.
    const exhausted = this.groups.map(() => new Set<string>());
    let questions = this.groups.map((_, group) => ({ group, query }));
    while (questions.length > 0) {
      for (const [i, { group, query: asked }] of questions.entries()) {
        exhausted[group]!.add(linkKey(asked));
        for (const { record, isReferred } of answers[i]!) {
          found.set(`${record.store}:${String(record.accountId)}`, record);
          if (isReferred === false) exhausted[group]!.add(linkKey(ownLink(record)));
        }
      }
      const links = new Map([...found.values()].flatMap(linksOf).map((link) => [linkKey(link), link]));
      questions = exhausted.flatMap((keys, group) =>
        [...links].filter(([key]) => !keys.has(key)).map(([, link]) => ({ group, query: link })),
      );
      answers = await Promise.all(questions.map((each) => this.groups[each.group]!(each.query)));
    }
    return [...found.values()].sort(
      (one, other) => this.order.indexOf(one.store) - this.order.indexOf(other.store),
    );
  }
}

/** @param stores one or more, all behind one connection pool */
function groupOf(stores: readonly IdentityStoreRepository[]): StoreGroup {
  const lookUp = (by: IdentityQuery['by']): ((key: UserKey) => Promise<FoundRecord[]>) =>
    batched((keys) => findRecords(stores, by, keys));
  const lookUps = {
    'user-name': lookUp('user-name'),
    person: lookUp('person'),
    user: lookUp('user'),
    technician: lookUp('technician'),
    'windows-account': lookUp('windows-account'),
  };
  return (query) => lookUps[query.by](userKeyOf(query));
}

/** What a column of `StoreStatements.by` holds. */
type UserKey = string | number;

async function findRecords(
  stores: readonly IdentityStoreRepository[],
  by: IdentityQuery['by'],
  keys: readonly UserKey[],
): Promise<FoundRecord[][]> {
  const knowing = stores.filter((store) => store.statements.by[by] !== null);
  if (knowing[0] === undefined) return keys.map(() => []);
  const list = listParameter(1, by === 'user-name' || by === 'windows-account' ? 'text' : 'bigint');
  // A list costs more than one key.
  const [name, condition, parameter] =
    keys.length === 1 ? [`find-one-by-${by}`, '= $1', keys[0]] : [`find-by-${by}`, `= ANY (${list})`, keys];
  const statement = unionAll(name, knowing, ({ statements }) => {
    const column = statements.by[by] ?? '';
    const isReferred = by === 'person' || by === 'user' ? 'NULL::boolean' : referredOf(statements, stores);
    return `SELECT ${column}::text AS asked, ${statements.record} AS record, ${isReferred} AS "isReferred"
      FROM ${statements.from} WHERE ${column} ${condition}`;
  });
  const rows = await readPrepared<FoundRecord & { asked: string }>(knowing[0].dataSource, statement, [
    parameter,
  ]);
  return keys.map((key) => rows.filter(({ asked }) => asked === String(key)));
}

/**
 * Whether a record of another store names this account. A sub-query with a limit looks into the index each
 * time; EXISTS may become a scan.
 */
function referredOf({ names, account }: StoreStatements, stores: readonly IdentityStoreRepository[]): string {
  const referring = stores.flatMap(({ statements: { from, by } }) => {
    const column = names === null ? null : by[names];
    return column === null || column === account
      ? []
      : [`(SELECT true FROM ${from} WHERE ${column} = ${account} LIMIT 1)`];
  });
  return `coalesce(${[...referring, 'false'].join(', ')})`;
}

/** Whom else a record names, and itself: persons and users. */
function linksOf({ personId, userId }: IdentityRecord): IdentityQuery[] {
  return [
    ...(personId === null ? [] : [{ by: 'person', personId } as const]),
    ...(userId === null ? [] : [{ by: 'user', userId } as const]),
  ];
}

/**
 * Whether the only database has nothing more to give: the record links to nobody else, and no other names it.
 */
function isComplete({ record, isReferred }: FoundRecord, asked: IdentityQuery): boolean {
  const exhausted = [linkKey(asked), isReferred === false ? linkKey(ownLink(record)) : null];
  return linksOf(record).every((link) => exhausted.includes(linkKey(link)));
}

/** What other stores call an account. */
function ownLink({ store, accountId }: IdentityRecord): IdentityQuery {
  if (store === 'person-directory') return { by: 'person', personId: accountId };
  return store === 'internal-legacy'
    ? { by: 'user', userId: accountId }
    : { by: 'technician', technicianId: accountId };
}

function linkKey(query: IdentityQuery): string {
  return `${query.by}:${String(userKeyOf(query))}`;
}

/** The stores of each database together. */
export function byDatabase(stores: readonly IdentityStoreRepository[]): IdentityStoreRepository[][] {
  const dataSources = [...new Set(stores.map((store) => store.dataSource))];
  return dataSources.map((each) => stores.filter(({ dataSource }) => dataSource === each));
}

/** One statement that asks all of them; the same stores make the same statement. */
export function unionAll(
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
    case 'technician':
      return query.technicianId;
    case 'windows-account':
      return query.accountKey;
  }
}
