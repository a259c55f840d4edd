import type { Caller } from '@platform/access-tokens';
import { postgresOptions } from '@platform/database';
import { createTestDatabase, testSize } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import fc from 'fast-check';
import { DataSource } from 'typeorm';
import { IdentitiesService } from '../src/identity/identities.service';
import { parseSubject } from '../src/identity/identity';
import type { Resolution } from '../src/identity/identity';
import { CombinedStoresRepository } from '../src/identity/combined-stores.repository';
import {
  InternalLegacyRepository,
  PersonDirectoryRepository,
  ServiceProvidersRepository,
} from '../src/identity/single-stores.repository';
import { AUTH_SCHEMA } from '../src/migrations/schemas';
import { migrateWithIdentities } from './auth-fixture';

/** Number of generated populations. The largest run has 10,000. */
const POPULATIONS = testSize('TEST_POPULATIONS', { quick: 100, full: 200 });
const PER_ROUND = 100;
/** Range of identifiers of one population. */
const SPAN = 100;
const PROVIDER = 815;

/** A generated account. Identifiers count from 1 within its population. */
interface Account {
  store: 'person' | 'user' | 'technician';
  id: number;
  personId: number | null;
  userId: number | null;
  userName: string;
  name: string;
  disabled: boolean;
}
type Population = readonly Account[];

const id = fc.integer({ min: 1, max: 4 });
const link = fc.option(id, { freq: 2 });
const account = fc.record({
  store: fc.constantFrom('person', 'user', 'technician'),
  id,
  link,
  userName: fc.constantFrom('ann', 'bob', 'cleo', 'dan', 'eve', 'finn'),
  name: fc.constantFrom('Ann', 'Bob'),
  disabled: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
});

/**
 * Generates a few accounts, with links to each other and to unknown accounts, more varied than the stores'
 * constraints allow.
 */
const population: fc.Arbitrary<Population> = fc
  .uniqueArray(account, {
    minLength: 1,
    maxLength: 6,
    comparator: (one, other) =>
      one.store === other.store &&
      (one.id === other.id ||
        one.userName === other.userName ||
        (one.link !== null && one.link === other.link)),
  })
  .map((accounts) =>
    accounts.map(({ link: other, ...each }) => ({
      ...each,
      store: each.store,
      personId: each.store === 'person' ? each.id : other,
      userId: each.store === 'user' ? each.id : each.store === 'person' ? other : null,
    })),
  );

/** Returns the accounts linked to `start`, directly or indirectly. */
function linkedWith(start: Account, all: Population): Account[] {
  const found = [start];
  for (let size = 0; size < found.length;) {
    size = found.length;
    for (const each of all)
      if (!found.includes(each) && found.some((other) => shareIdentifier(each, other))) found.push(each);
  }
  return found;
}

const shareIdentifier = (one: Account, other: Account): boolean =>
  (one.personId !== null && one.personId === other.personId) ||
  (one.userId !== null && one.userId === other.userId);

/**
 * Returns the expected identity of an account, or null if it must not resolve. Its facilities show which
 * accounts were united.
 */
function expectedOf(start: Account, all: Population, base: number): object | null {
  const linked = linkedWith(start, all);
  const isOne = (values: readonly unknown[]): boolean => new Set(values).size === values.length;
  const known = (values: readonly (number | null)[]): number[] => [
    ...new Set(values.filter((value) => value !== null)),
  ];
  const persons = known(linked.map(({ personId }) => personId));
  const users = known(linked.map(({ userId }) => userId));
  if (!isOne(linked.map(({ store }) => store)) || persons.length > 1 || users.length > 1) return null;
  if (linked.some(({ disabled }) => disabled)) return null;
  const [personId = null, userId = null] = [persons[0] ?? null, users[0] ?? null];
  const subject =
    personId !== null
      ? `personid:${String(base + personId)}`
      : userId !== null
        ? `userid:${String(base + userId)}`
        : `technician:${String(PROVIDER)}:${String(base + start.id)}`;
  return {
    subject,
    personId: personId && base + personId,
    userId: userId && base + userId,
    names: [...new Set(linked.map(({ userName }) => `${userName}.${String(base)}`))].toSorted(),
    facilities: linked
      .filter(({ store }) => store !== 'user')
      .map((each) => facilityOf(each, base))
      .toSorted((one, other) => one - other),
  };
}

const facilityOf = ({ store, id: account }: Account, base: number): number =>
  10 * (base + account) + (store === 'person' ? 1 : 2);

function summary(resolution: Resolution): object | null {
  if (resolution.outcome !== 'resolved') return null;
  const { subject, personId, userId, userNameKeys, facilities } = resolution.identity;
  return {
    subject,
    personId,
    userId,
    names: userNameKeys.toSorted(),
    facilities: facilities.map(({ value }) => value),
  };
}

interface LookUp {
  asked: string;
  resolution: Promise<Resolution>;
  expected: object | null;
}

/** The stores, in one database or in several. */
interface Arrangement {
  stores: CombinedStoresRepository;
  identities: IdentitiesService;
}

/** Returns every look-up of a population with its expected result. */
function lookUps({ stores, identities }: Arrangement, all: Population, base: number): LookUp[] {
  const resolved = all.map((each) => ({ each, expected: expectedOf(each, all, base) }));
  const expectedWhere = (is: (account: Account) => boolean): object | null => {
    const found = resolved.filter(({ each }) => is(each));
    const isOne = found.every(({ each }) => linkedWith(found[0]!.each, all).includes(each));
    return isOne ? (found[0]?.expected ?? null) : null;
  };
  const ids = [1, 2, 3, 4];
  const technicians = all.filter(({ store }) => store === 'technician');
  return [
    ...ids.map((personId) => ({
      asked: `person ${String(personId)}`,
      resolution: stores.resolve({ by: 'person', personId: base + personId }),
      expected: expectedWhere((each) => each.personId === personId),
    })),
    ...ids.map((userId) => ({
      asked: `user ${String(userId)}`,
      resolution: stores.resolve({ by: 'user', userId: base + userId }),
      expected: expectedWhere((each) => each.userId === userId),
    })),
    ...technicians.map(({ id: technicianId }) => ({
      asked: `technician ${String(technicianId)}`,
      resolution: stores.resolve({ by: 'technician', technicianId: base + technicianId }),
      expected: expectedWhere(({ store, id: account }) => store === 'technician' && account === technicianId),
    })),
    ...technicians.map(({ userName, name }) => ({
      asked: `technician of the provider, ${userName}`,
      resolution: identities.resolveTrusted({
        persona: 4,
        serviceProviderID: PROVIDER,
        name: `${name}.${String(base)}`,
        userName: `${userName}.${String(base)}`,
      }),
      expected: expectedWhere((each) => each.store === 'technician' && each.userName === userName),
    })),
    ...all.map(({ userName }) => ({
      asked: `user name ${userName}`,
      resolution: stores.resolve({ by: 'user-name', userName: `${userName}.${String(base)}` }),
      expected: expectedWhere((each) => each.userName === userName),
    })),
  ];
}

/** Returns the look-ups by which the tokens of a resolved user are refreshed and exchanged. */
async function tokenLookUps(
  { identities }: Arrangement,
  { asked, expected, resolution }: LookUp,
): Promise<LookUp[]> {
  const found = await resolution;
  if (found.outcome !== 'resolved') return [];
  const subject = parseSubject(found.identity.subject);
  if (subject === null || subject.kind === 'technician-name') throw new Error(`${asked}: no account`);
  const caller = found.identity as unknown as Caller;
  return [
    { asked: `${asked}, refreshed`, resolution: identities.resolveSubject(subject), expected },
    { asked: `${asked}, exchanged`, resolution: identities.resolveCaller(caller), expected },
  ];
}

describe(`identities of ${String(POPULATIONS)} populations`, () => {
  let database: TestDatabase;
  const dataSources: DataSource[] = [];
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    for (let n = 0; n < 3; n += 1) {
      const settings = { ...AUTH_SCHEMA.settings, url: database.url, poolSize: 2 };
      dataSources.push(await new DataSource(postgresOptions(settings)).initialize());
    }
  });
  afterAll(async () => {
    await Promise.all(dataSources.map((each) => each.destroy()));
    await database.drop();
  });

  function arrange(persons: DataSource, users: DataSource, technicians: DataSource): Arrangement {
    const providers = new ServiceProvidersRepository(technicians);
    const all = [new PersonDirectoryRepository(persons), new InternalLegacyRepository(users), providers];
    const stores = new CombinedStoresRepository(all);
    return { stores, identities: new IdentitiesService(stores, providers, persons) };
  }

  /** Returns the look-ups of one population that have a wrong result. */
  async function wrongLookUps(arrangement: Arrangement, all: Population, base: number): Promise<object[]> {
    const first = lookUps(arrangement, all, base);
    const second = await Promise.all(first.map((lookUp) => tokenLookUps(arrangement, lookUp)));
    const results = [...first, ...second.flat()].map(async ({ asked, resolution, expected }) => ({
      all,
      asked,
      expected,
      found: summary(await resolution),
    }));
    return (await Promise.all(results)).filter(
      ({ found, expected }) => JSON.stringify(found) !== JSON.stringify(expected),
    );
  }

  it('are the same from every account and identifier, in one database and in three', async () => {
    const [one, two, three] = dataSources as [DataSource, DataSource, DataSource];
    const arrangements = [arrange(one, one, one), arrange(one, two, three)];
    for (let done = 0; done < POPULATIONS; done += PER_ROUND) {
      const populations = fc.sample(population, PER_ROUND);
      await store(database, populations);
      for (const arrangement of arrangements)
        for (const [n, all] of populations.entries())
          expect(await wrongLookUps(arrangement, all, baseOf(n))).toEqual([]);
    }
  }, 1_800_000);
});

const baseOf = (population: number): number => (population + 1) * SPAN;

const TABLES = {
  person: 'person_directory.person',
  user: 'internal_legacy.internal_user',
  technician: 'service_providers.technician',
};

async function store(database: TestDatabase, populations: readonly Population[]): Promise<void> {
  const rows = populations.flatMap((all, n) => {
    const base = baseOf(n);
    const shifted = (number: number | null): number | null => number && base + number;
    return all.map((each) => ({
      store: each.store,
      disabled: each.disabled,
      display_name: `${each.name}.${String(base)}`,
      user_name: `${each.userName}.${String(base)}`,
      user_name_key: `${each.userName}.${String(base)}`,
      person_id: shifted(each.personId),
      user_id: shifted(each.userId),
      technician_id: base + each.id,
      provider_id: PROVIDER,
      personas: 2,
      facility_id: facilityOf(each, base),
    }));
  });
  const of = (wanted: Account['store']): string => JSON.stringify(rows.filter((row) => row.store === wanted));
  const fill = (table: string, columns: string, json: string): Promise<unknown> =>
    database.query(
      `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM jsonb_populate_recordset(NULL::${table}, $1)`,
      [json],
    );
  await database.query(`TRUNCATE ${Object.values(TABLES).join(', ')} CASCADE`);
  const account = 'user_name, user_name_key, display_name, disabled';
  await fill(TABLES.person, `${account}, person_id, user_id, personas`, of('person'));
  await fill(TABLES.user, `${account}, user_id, person_id`, of('user'));
  await fill(TABLES.technician, `${account}, technician_id, provider_id, person_id`, of('technician'));
  await fill('person_directory.person_facility', 'person_id, facility_id', of('person'));
  await fill('service_providers.technician_facility', 'technician_id, facility_id', of('technician'));
}
