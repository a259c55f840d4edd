import { Module } from '@nestjs/common';
import type { DynamicModule, FactoryProvider } from '@nestjs/common';
import { getDataSourceToken } from '@nestjs/typeorm';
import { DatabaseModule } from '@platform/database';
import type { PostgresSettings } from '@platform/database';
import type { DataSource } from 'typeorm';
import { AccessControlRepository } from '../access-control/access-control.repository';
import type { AuthConfig } from '../config';
import { IdentitiesService } from './identities.service';
import type { Store } from './identity';
import { CombinedStoresRepository } from './combined-stores.repository';
import type { IdentityStore } from './combined-stores.repository';
import { STORES } from './single-stores.repository';

/** The schema of each store. */
type StoreSchemas = Readonly<Record<Store, { settings: Omit<PostgresSettings, 'url' | 'poolSize'> }>>;

const STORE_NAMES = Object.keys(STORES) as Store[];

@Module({})
export class IdentityModule {
  static forRoot(config: AuthConfig, schemas: StoreSchemas): DynamicModule {
    const nameOf = (store: Store): string | undefined => dataSourceName(store, config, schemas);
    return {
      module: IdentityModule,
      imports: STORE_NAMES.flatMap((store) => databasesOf(store, config, schemas)),
      providers: [
        ...STORE_NAMES.map((store) => onDataSource<IdentityStore>(nameOf(store), STORES[store])),
        {
          provide: CombinedStoresRepository,
          inject: Object.values(STORES),
          useFactory: (...stores: IdentityStore[]) => new CombinedStoresRepository(stores),
        },
        onDataSource(nameOf('INTERNAL_LEGACY'), AccessControlRepository),
        IdentitiesService,
      ],
      exports: [
        ...Object.values(STORES),
        IdentitiesService,
        CombinedStoresRepository,
        AccessControlRepository,
      ],
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
function dataSourceName(store: Store, config: AuthConfig, schemas: StoreSchemas): string | undefined {
  return storeUrl(store, config) === config.DATABASE_URL ? undefined : schemas[store].settings.schema;
}

function databasesOf(store: Store, config: AuthConfig, schemas: StoreSchemas): DynamicModule[] {
  const name = dataSourceName(store, config, schemas);
  if (name === undefined) return [];
  const { settings } = schemas[store];
  const url = storeUrl(store, config);
  return [DatabaseModule.forRoot({ ...settings, url, poolSize: config.DATABASE_POOL_SIZE, name })];
}

function onDataSource<T>(
  name: string | undefined,
  repository: new (dataSource: DataSource) => T,
): FactoryProvider<T> {
  return {
    provide: repository,
    inject: [getDataSourceToken(name)],
    useFactory: (dataSource: DataSource) => new repository(dataSource),
  };
}
