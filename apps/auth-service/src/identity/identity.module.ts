import { Module } from '@nestjs/common';
import type { DynamicModule, FactoryProvider, Type } from '@nestjs/common';
import { getDataSourceToken } from '@nestjs/typeorm';
import { DatabaseModule } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { AuthConfig } from '../config';
import type { ServiceSchema } from '../migrations/schemas';
import {
  INTERNAL_LEGACY_SCHEMA,
  PERSON_DIRECTORY_SCHEMA,
  SERVICE_PROVIDERS_SCHEMA,
} from '../migrations/schemas';
import type { IdentityStore } from './identity';
import { IDENTITY_STORES, IdentityDirectory } from './identity-directory.service';
import { IdentityResolver } from './identity-resolver.service';
import { InternalLegacyStore } from './internal-legacy.store';
import { CallerIdentities } from './caller-identities.service';
import { MeController } from './me.controller';
import { SecurityGroupsStore } from '../access-control/security-groups.store';
import { PasswordAuthenticator } from './passwords/password-authenticator.service';
import { PasswordHasher } from './passwords/password-hasher.service';
import { PersonDirectoryStore } from './person-directory.store';
import { ServiceProvidersStore } from './service-providers.store';

interface StoreConnection {
  store: Type<IdentityStore>;
  schema: ServiceSchema;
  url: (config: AuthConfig) => string | undefined;
}

const PERSON_DIRECTORY: StoreConnection = {
  store: PersonDirectoryStore,
  schema: PERSON_DIRECTORY_SCHEMA,
  url: (config) => config.PERSON_DIRECTORY_DATABASE_URL,
};
const INTERNAL_LEGACY: StoreConnection = {
  store: InternalLegacyStore,
  schema: INTERNAL_LEGACY_SCHEMA,
  url: (config) => config.INTERNAL_LEGACY_DATABASE_URL,
};
const SERVICE_PROVIDERS: StoreConnection = {
  store: ServiceProvidersStore,
  schema: SERVICE_PROVIDERS_SCHEMA,
  url: (config) => config.SERVICE_PROVIDERS_DATABASE_URL,
};

/** The stores in the order in which they are asked. */
const STORES: readonly StoreConnection[] = [PERSON_DIRECTORY, INTERNAL_LEGACY, SERVICE_PROVIDERS];

@Module({})
export class IdentityModule {
  static forRoot(config: AuthConfig): DynamicModule {
    const connected = STORES.map((connection) => connectStore(connection, config));
    return {
      module: IdentityModule,
      controllers: [MeController],
      imports: connected.flatMap(({ imports }) => imports),
      providers: [
        ...connected.map(({ provider }) => provider),
        {
          provide: IDENTITY_STORES,
          inject: STORES.map(({ store }) => store),
          useFactory: (...stores: IdentityStore[]) => stores,
        },
        {
          provide: SecurityGroupsStore,
          inject: [getDataSourceToken(dataSourceName(INTERNAL_LEGACY, config))],
          useFactory: (dataSource: DataSource) => new SecurityGroupsStore(dataSource),
        },
        IdentityDirectory,
        IdentityResolver,
        CallerIdentities,
        PasswordHasher,
        PasswordAuthenticator,
      ],
      exports: [IdentityResolver, CallerIdentities, PasswordAuthenticator, SecurityGroupsStore],
    };
  }
}

/** A store in the service's own database uses its pool (no name); one that lives elsewhere gets a pool of its own. */
function dataSourceName({ schema, url }: StoreConnection, config: AuthConfig): string | undefined {
  const isElsewhere = (url(config) ?? config.DATABASE_URL) !== config.DATABASE_URL;
  return isElsewhere ? schema.settings.schema : undefined;
}

function connectStore(
  connection: StoreConnection,
  config: AuthConfig,
): { imports: DynamicModule[]; provider: FactoryProvider<IdentityStore> } {
  const { store, schema, url } = connection;
  const name = dataSourceName(connection, config);
  const provider: FactoryProvider<IdentityStore> = {
    provide: store,
    inject: [getDataSourceToken(name)],
    useFactory: (dataSource: DataSource) => new store(dataSource),
  };
  if (name === undefined) return { imports: [], provider };
  const storeUrl = url(config) ?? config.DATABASE_URL;
  const database = { ...schema.settings, url: storeUrl, poolSize: config.DATABASE_POOL_SIZE, name };
  return { imports: [DatabaseModule.forRoot(database)], provider };
}
