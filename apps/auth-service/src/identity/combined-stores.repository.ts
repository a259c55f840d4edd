import { batched, listParameter, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { IdentityQuery, IdentityRecord, IdentityStoreName, Resolution } from './identity';
import { userNameKey } from './identity';
import type { StoreAccount } from './identity-stores.entity';
import { mergeIdentities } from './merge-identities';
import type { ExplicitIdentifiers } from './merge-identities';

/** The SQL fragments of one store. Stores in one database are combined into one statement. */
export interface StoreStatements {
  /** An expression over `from`: an IdentityRecord as JSON. */
  record: string;
  /** The FROM item: the table of accounts. */
  from: string;
  /** The column that identifies an account. */
  account: string;
  /** The kind of identifier by which other stores refer to an account. Null: no store refers to it. */
  names: 'person' | 'user' | null;
  /** The column to search for each kind of query. Null: the store cannot be searched by it. */
  by: Readonly<Record<IdentityQuery['by'], string | null>>;
}

/**
 * One legacy identity store; `single-stores.repository` has each. An unknown user yields an empty list and an
 * outage throws, so that an outage is never mistaken for "no such user".
 */
export abstract class IdentityStore {
  constructor(readonly dataSource: DataSource) {}

  abstract readonly name: IdentityStoreName;
  abstract readonly statements: StoreStatements;

  /** The entity of the accounts table, and its identifying property. */
  abstract readonly accounts: { entity: new () => StoreAccount; id: string };
}

/**
 * Finds the matching records in all stores behind one connection pool. Several records of one store mean that
 * the store itself is ambiguous.
 */
type StoreGroup = (query: IdentityQuery) => Promise<FoundRecord[]>;

/**
 * A record, and whether a record of another store in the group refers to its account. Null for a query by
 * person or user, which finds all records with that identifier anyway.
 */
interface FoundRecord {
  record: IdentityRecord;
  isReferred: boolean | null;
}

/**
 * All identity stores as one. Stores in one database share one prepared statement, and concurrent look-ups
 * share one execution. Every issue of a token looks up its user, and a round trip per store would be most of
 * the cost of the issue.
 */
export class CombinedStoresRepository {
  private readonly groups: readonly StoreGroup[];
  private readonly order: readonly IdentityStoreName[];

  /** @param stores in order of precedence: the first store that knows a name supplies it */
  constructor(stores: readonly IdentityStore[]) {
    this.groups = byDatabase(stores).map(groupOf);
    this.order = stores.map((store) => store.name);
  }

  /** Resolves a user. An outage of any store throws, so that no token is issued for half an identity. */
  async resolve(query: IdentityQuery, explicit: ExplicitIdentifiers = {}): Promise<Resolution> {
    return mergeIdentities(await this.find(query), explicit);
  }

  /**
   * Finds the matching records in all stores, and all records reachable from them by links, ordered by store.
   * So one person's records are the same whichever identifier the query used. Most users have no links and
   * cost one round trip.
   */
  async find(query: IdentityQuery): Promise<IdentityRecord[]> {
    const first = await Promise.all(this.groups.map((group) => group(query)));
    const [only, ...others] = first.flat();
    if (only !== undefined && others.length === 0 && this.groups.length === 1 && isComplete(only, query))
      return [only.record];
    return this.followLinks(query, first);
  }

  /** @param results the records that each group returned for the query */
  private async followLinks(query: IdentityQuery, results: FoundRecord[][]): Promise<IdentityRecord[]> {
    const found = new Map<string, IdentityRecord>();
    // For each group, the identifiers that need no further look-up in that group.
    const exhausted = this.groups.map(() => new Set<string>());
    let lookUps = this.groups.map((_, group) => ({ group, query }));
    while (lookUps.length > 0) {
      for (const [i, { group, query: asked }] of lookUps.entries()) {
        exhausted[group]!.add(linkKey(asked));
        for (const { record, isReferred } of results[i]!) {
          found.set(`${record.store}:${String(record.accountId)}`, record);
          if (isReferred === false) exhausted[group]!.add(linkKey(ownLink(record)));
        }
      }
      const links = new Map([...found.values()].flatMap(linksOf).map((link) => [linkKey(link), link]));
      lookUps = exhausted.flatMap((keys, group) =>
        [...links].filter(([key]) => !keys.has(key)).map(([, link]) => ({ group, query: link })),
      );
      results = await Promise.all(lookUps.map((each) => this.groups[each.group]!(each.query)));
    }
    return [...found.values()].sort(
      (one, other) => this.order.indexOf(one.store) - this.order.indexOf(other.store),
    );
  }
}

/** @param stores at least one, all behind one connection pool */
function groupOf(stores: readonly IdentityStore[]): StoreGroup {
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

/** A value to compare with a column of `StoreStatements.by`. */
type UserKey = string | number;

async function findRecords(
  stores: readonly IdentityStore[],
  by: IdentityQuery['by'],
  keys: readonly UserKey[],
): Promise<FoundRecord[][]> {
  const searchable = stores.filter((store) => store.statements.by[by] !== null);
  if (searchable[0] === undefined) return keys.map(() => []);
  const list = listParameter(1, by === 'user-name' || by === 'windows-account' ? 'text' : 'bigint');
  // A single key has its own statement, because `= ANY (list)` is slower than `= $1`.
  const [name, condition, parameter] =
    keys.length === 1 ? [`find-one-by-${by}`, '= $1', keys[0]] : [`find-by-${by}`, `= ANY (${list})`, keys];
  const statement = unionAll(name, searchable, ({ statements }) => {
    const column = statements.by[by] ?? '';
    const isReferred = by === 'person' || by === 'user' ? 'NULL::boolean' : referredOf(statements, stores);
    return `SELECT ${column}::text AS asked, ${statements.record} AS record, ${isReferred} AS "isReferred"
      FROM ${statements.from} WHERE ${column} ${condition}`;
  });
  const rows = await readPrepared<FoundRecord & { asked: string }>(searchable[0].dataSource, statement, [
    parameter,
  ]);
  return keys.map((key) => rows.filter(({ asked }) => asked === String(key)));
}

/**
 * Returns an SQL expression for whether a record of another store refers to this account. It uses a sub-query
 * with LIMIT, which probes an index for each row; EXISTS may be planned as a scan.
 */
function referredOf({ names, account }: StoreStatements, stores: readonly IdentityStore[]): string {
  const referring = stores.flatMap(({ statements: { from, by } }) => {
    const column = names === null ? null : by[names];
    return column === null || column === account
      ? []
      : [`(SELECT true FROM ${from} WHERE ${column} = ${account} LIMIT 1)`];
  });
  return `coalesce(${[...referring, 'false'].join(', ')})`;
}

/** Returns queries for the person and the user that a record names; one of them may be the record itself. */
function linksOf({ personId, userId }: IdentityRecord): IdentityQuery[] {
  return [
    ...(personId === null ? [] : [{ by: 'person', personId } as const]),
    ...(userId === null ? [] : [{ by: 'user', userId } as const]),
  ];
}

/**
 * Whether the only database has no further record of this user: the record refers to no other account, and no
 * other record refers to it.
 */
function isComplete({ record, isReferred }: FoundRecord, asked: IdentityQuery): boolean {
  const exhausted = [linkKey(asked), isReferred === false ? linkKey(ownLink(record)) : null];
  return linksOf(record).every((link) => exhausted.includes(linkKey(link)));
}

/** Returns the query by which other stores refer to this account. */
function ownLink({ store, accountId }: IdentityRecord): IdentityQuery {
  if (store === 'person-directory') return { by: 'person', personId: accountId };
  return store === 'internal-legacy'
    ? { by: 'user', userId: accountId }
    : { by: 'technician', technicianId: accountId };
}

function linkKey(query: IdentityQuery): string {
  return `${query.by}:${String(userKeyOf(query))}`;
}

/** Groups the stores by their database. */
export function byDatabase(stores: readonly IdentityStore[]): IdentityStore[][] {
  const dataSources = [...new Set(stores.map((store) => store.dataSource))];
  return dataSources.map((each) => stores.filter(({ dataSource }) => dataSource === each));
}

/** Combines the stores' statements into one. The same stores always yield the same text and name. */
export function unionAll(
  name: string,
  stores: readonly IdentityStore[],
  textOf: (store: IdentityStore) => string,
): PreparedStatement {
  return {
    // PostgreSQL truncates names after 63 characters.
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
