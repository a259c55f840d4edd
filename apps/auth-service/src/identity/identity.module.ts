import { Module } from '@nestjs/common';
import type { DynamicModule, FactoryProvider, Type } from '@nestjs/common';
import { getDataSourceToken } from '@nestjs/typeorm';
import { DatabaseModule } from '@platform/database';
import type { DataSource } from 'typeorm';
import { AccessControlRepository } from '../access-control/access-control.repository';
import type { AuthConfig } from '../config';
import { STORE_SCHEMAS } from '../migrations/schemas';
import type { Store } from '../migrations/schemas';
import { IdentitiesService } from './identities.service';
import { IdentityStoresRepository } from './identity-stores.repository';
import type { IdentityStoreRepository } from './identity-stores.repository';
import { MeController } from './me.controller';
import { PasswordLockoutsRepository } from './passwords/password-lockouts.repository';
import { PasswordsService } from './passwords/passwords.service';
import { StoredPasswordsRepository } from './passwords/stored-passwords.repository';
import {
  InternalLegacyRepository,
  PersonDirectoryRepository,
  ServiceProvidersRepository,
} from './single-stores.repository';

/** The stores in order of precedence. */
const STORES = {
  PERSON_DIRECTORY: PersonDirectoryRepository,
  INTERNAL_LEGACY: InternalLegacyRepository,
  SERVICE_PROVIDERS: ServiceProvidersRepository,
} as const satisfies Record<Store, Type<IdentityStoreRepository>>;
const STORE_NAMES = Object.keys(STORES) as Store[];

@Module({})
export class IdentityModule {
  static forRoot(config: AuthConfig): DynamicModule {
    return {
      module: IdentityModule,
      controllers: [MeController],
      imports: STORE_NAMES.flatMap((store) => databasesOf(store, config)),
      providers: [
        ...STORE_NAMES.map((store) => onDataSourceOf<IdentityStoreRepository>(store, STORES[store], config)),
        {
          provide: IdentityStoresRepository,
          inject: Object.values(STORES),
          useFactory: (...stores: IdentityStoreRepository[]) => new IdentityStoresRepository(stores),
        },
        onDataSourceOf('INTERNAL_LEGACY', AccessControlRepository, config),
        {
          provide: StoredPasswordsRepository,
          inject: Object.values(STORES),
          useFactory: (...stores: IdentityStoreRepository[]) => new StoredPasswordsRepository(stores),
        },
        IdentitiesService,
        PasswordLockoutsRepository,
        PasswordsService,
      ],
      exports: [IdentitiesService, IdentityStoresRepository, PasswordsService, AccessControlRepository],
    };
  }
}

function storeUrl(store: Store, config: AuthConfig): string {
  return config[`${store}_DATABASE_URL`] ?? config.DATABASE_URL;
}

/**
 * Returns no name for a store in the service's own database, which shares the service's pool. A store in
 * another database gets its own pool.
 */
function dataSourceName(store: Store, config: AuthConfig): string | undefined {
  return storeUrl(store, config) === config.DATABASE_URL ? undefined : STORE_SCHEMAS[store].settings.schema;
}

function databasesOf(store: Store, config: AuthConfig): DynamicModule[] {
  const name = dataSourceName(store, config);
  if (name === undefined) return [];
  const { settings } = STORE_SCHEMAS[store];
  const url = storeUrl(store, config);
  return [DatabaseModule.forRoot({ ...settings, url, poolSize: config.DATABASE_POOL_SIZE, name })];
}

function onDataSourceOf<T>(
  store: Store,
  repository: new (dataSource: DataSource) => T,
  config: AuthConfig,
): FactoryProvider<T> {
  return {
    provide: repository,
    inject: [getDataSourceToken(dataSourceName(store, config))],
    useFactory: (dataSource: DataSource) => new repository(dataSource),
  };
}
