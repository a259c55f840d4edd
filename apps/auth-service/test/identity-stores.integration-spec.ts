import { postgresOptions } from '@platform/database';
import { Persona } from '@platform/personas';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { DataSource } from 'typeorm';
import type { IdentityQuery, IdentityRecord } from '../src/identity/identity';
import { CombinedStoresRepository } from '../src/identity/combined-stores.repository';
import type { IdentityStore } from '../src/identity/combined-stores.repository';
import type { StoredPassword } from '../src/identity/passwords/stored-passwords.repository';
import { StoredPasswordsRepository } from '../src/identity/passwords/stored-passwords.repository';
import {
  InternalLegacyRepository,
  PersonDirectoryRepository,
  ServiceProvidersRepository,
} from '../src/identity/single-stores.repository';
import { AUTH_SCHEMA, SCHEMAS } from '../src/migrations/schemas';
import { migrateWithIdentities } from './auth-fixture';

interface StoreCase {
  create: (dataSource: DataSource) => IdentityStore;
  /** A user of the store without a password. */
  userName: string;
  setPassword: string;
  disable: string;
  record: Partial<IdentityRecord>;
  byIdentifier: IdentityQuery;
}

const CASES: Record<string, StoreCase> = {
  'person directory': {
    create: (dataSource) => new PersonDirectoryRepository(dataSource),
    userName: 'Carl.Customer',
    setPassword: `UPDATE person_directory.person SET password_hash = $1 WHERE person_id = 1001`,
    disable: `UPDATE person_directory.person SET disabled = true WHERE person_id = 1001`,
    record: {
      store: 'person-directory',
      personId: 1001,
      userId: null,
      personas: Persona.Customer,
      facilities: [
        [501, null],
        [502, null],
      ],
    },
    byIdentifier: { by: 'person', personId: 1001 },
  },
  'internal legacy': {
    create: (dataSource) => new InternalLegacyRepository(dataSource),
    userName: 'IVY.internal',
    setPassword: `UPDATE internal_legacy.internal_user SET password_hash = $1 WHERE user_id = 9001`,
    disable: `UPDATE internal_legacy.internal_user SET disabled = true WHERE user_id = 9001`,
    record: { store: 'internal-legacy', personId: null, userId: 9001, personas: Persona.InternalPartner },
    byIdentifier: { by: 'user', userId: 9001 },
  },
  'service providers': {
    create: (dataSource) => new ServiceProvidersRepository(dataSource),
    userName: 'Tess.Tech',
    setPassword: `UPDATE service_providers.technician SET password_hash = $1 WHERE user_name_key = 'tess.tech'`,
    disable: `UPDATE service_providers.provider SET disabled = true WHERE provider_id = 815`,
    record: {
      store: 'service-providers',
      personId: 1004,
      providerId: 815,
      personas: Persona.ServiceProvider,
      facilities: [[501, null]],
    },
    byIdentifier: { by: 'person', personId: 1004 },
  },
};

/** Uses the application's database role: its grants must cover everything that a store needs. */
describe.each(Object.entries(CASES))('identity store: %s', (_, { create, ...expected }) => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let store: CombinedStoresRepository;
  let passwords: StoredPasswordsRepository;

  const findPassword = async (userName: string): Promise<StoredPassword | null> => {
    const lookup = await passwords.find(userName);
    return lookup.found ? lookup.password : null;
  };

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    const entities = SCHEMAS.flatMap(({ settings }) => settings.entities);
    const settings = { ...AUTH_SCHEMA.settings, entities, url: database.url, poolSize: 2 };
    dataSource = new DataSource(postgresOptions(settings));
    await dataSource.initialize();
    store = new CombinedStoresRepository([create(dataSource)]);
    passwords = new StoredPasswordsRepository([create(dataSource)]);
  });
  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  it('finds a user by name in any letter case and by identifier, with the same result', async () => {
    const byName = await store.find({ by: 'user-name', userName: expected.userName });
    expect(byName).toEqual([expect.objectContaining({ ...expected.record, disabled: false })]);
    expect(await store.find(expected.byIdentifier)).toEqual(byName);
  });

  it('returns nothing for an unknown user', async () => {
    expect(await store.find({ by: 'user-name', userName: 'nobody' })).toEqual([]);
    expect(await store.find({ by: 'person', personId: Number.MAX_SAFE_INTEGER })).toEqual([]);
    expect(await store.find({ by: 'user', userId: -1 })).toEqual([]);
    expect(await findPassword('nobody')).toBeNull();
  });

  it('treats quotes and wildcards in names literally', async () => {
    expect(await store.find({ by: 'user-name', userName: `' OR 1=1 --` })).toEqual([]);
    expect(await store.find({ by: 'user-name', userName: '%' })).toEqual([]);
  });

  it('replaces a password only if it is still the one that was verified', async () => {
    await database.query(expected.setPassword, ['first']);
    const password = await findPassword(expected.userName);
    expect(password).toMatchObject({ store: expected.record.store, hash: 'first' });
    await passwords.upgrade({ ...password!, hash: 'changed meanwhile' }, 'second');
    expect(await findPassword(expected.userName)).toMatchObject({ hash: 'first' });
    await passwords.upgrade(password!, 'second');
    expect(await findPassword(expected.userName)).toMatchObject({ hash: 'second' });
  });

  it('throws in an outage instead of returning no user', async () => {
    const unreachable = new DataSource(
      postgresOptions({ ...AUTH_SCHEMA.settings, url: database.url, poolSize: 1 }),
    );
    await unreachable.initialize();
    await unreachable.destroy();
    await expect(
      new CombinedStoresRepository([create(unreachable)]).find({
        by: 'user-name',
        userName: expected.userName,
      }),
    ).rejects.toThrow();
  });

  it('may change only password hashes', async () => {
    for (const statement of [
      expected.disable,
      `DELETE FROM person_directory.person`,
      `DELETE FROM auth.application`,
    ]) {
      await expect(dataSource.query(statement)).rejects.toThrow(/permission denied/);
    }
  });

  it('returns disabled users as disabled, without their password', async () => {
    await database.query(expected.disable);
    expect(await store.find(expected.byIdentifier)).toEqual([expect.objectContaining({ disabled: true })]);
  });
});
