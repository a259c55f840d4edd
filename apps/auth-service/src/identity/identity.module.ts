import { Module } from '@nestjs/common';
import type { DynamicModule, FactoryProvider, Type } from '@nestjs/common';
import { getDataSourceToken } from '@nestjs/typeorm';
import { DatabaseModule } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { AuthConfig } from '../config';
import { STORE_SCHEMAS } from '../migrations/schemas';
import type { Store } from '../migrations/schemas';
import type { IdentityStore } from './identity';
import { IDENTITY_STORES, IdentityDirectory } from './identity-directory.service';
import { IdentityResolver } from './identity-resolver.service';
import { InternalLegacyStore } from './internal-legacy.store';
import { CallerIdentities } from './caller-identities.service';
import { MeController } from './me.controller';
import { AccessControlRepository } from '../access-control/access-control.repository';
import { PasswordAuthenticator } from './passwords/password-authenticator.service';
import { PasswordHasher } from './passwords/password-hasher.service';
import { PersonDirectoryStore } from './person-directory.store';
import { ServiceProvidersStore } from './service-providers.store';

/** The stores in the order in which they are asked. */
const STORES: Readonly<Record<Store, Type<IdentityStore>>> = {
  PERSON_DIRECTORY: PersonDirectoryStore,
  INTERNAL_LEGACY: InternalLegacyStore,
  SERVICE_PROVIDERS: ServiceProvidersStore,
};

@Module({})
export class IdentityModule {
  static forRoot(config: AuthConfig): DynamicModule {
    const connected = (Object.keys(STORES) as Store[]).map((name) => connectStore(name, config));
    return {
      module: IdentityModule,
      controllers: [MeController],
      imports: connected.flatMap(({ imports }) => imports),
      providers: [
        ...connected.map(({ provider }) => provider),
        {
          provide: IDENTITY_STORES,
          inject: Object.values(STORES),
          useFactory: (...stores: IdentityStore[]) => stores,
        },
        {
          provide: AccessControlRepository,
          inject: [getDataSourceToken(dataSourceName('INTERNAL_LEGACY', config))],
          useFactory: (dataSource: DataSource) => new AccessControlRepository(dataSource),
        },
        IdentityDirectory,
        IdentityResolver,
        CallerIdentities,
        PasswordHasher,
        PasswordAuthenticator,
      ],
      exports: [IdentityResolver, CallerIdentities, PasswordAuthenticator, AccessControlRepository],
    };
  }
}

function storeUrl(name: Store, config: AuthConfig): string {
  return config[`${name}_DATABASE_URL`] ?? config.DATABASE_URL;
}

/** A store in the service's own database uses its pool (no name); one that lives elsewhere gets a pool of its own. */
function dataSourceName(name: Store, config: AuthConfig): string | undefined {
  return storeUrl(name, config) === config.DATABASE_URL ? undefined : STORE_SCHEMAS[name].settings.schema;
}

function connectStore(
  storeName: Store,
  config: AuthConfig,
): { imports: DynamicModule[]; provider: FactoryProvider<IdentityStore> } {
  const store = STORES[storeName];
  const name = dataSourceName(storeName, config);
  const provider: FactoryProvider<IdentityStore> = {
    provide: store,
    inject: [getDataSourceToken(name)],
    useFactory: (dataSource: DataSource) => new store(dataSource),
  };
  if (name === undefined) return { imports: [], provider };
  const { settings } = STORE_SCHEMAS[storeName];
  const database = {
    ...settings,
    url: storeUrl(storeName, config),
    poolSize: config.DATABASE_POOL_SIZE,
    name,
  };
  return { imports: [DatabaseModule.forRoot(database)], provider };
}
