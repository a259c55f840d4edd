import { lockLimitShape } from '@platform/database';
import { postgresAddresses } from '@platform/service-defaults';
import { z } from 'zod';
import type { Store } from '../identity/identity';

/**
 * Connection URLs of the table owners. Each store may have its own database, and each database its own owner.
 */
export const ownerAddressShape = {
  DATABASE_URL: postgresAddresses.optional(),
  MIGRATION_DATABASE_URL: postgresAddresses.optional(),
  PERSON_DIRECTORY_DATABASE_URL: postgresAddresses.optional(),
  PERSON_DIRECTORY_MIGRATION_DATABASE_URL: postgresAddresses.optional(),
  INTERNAL_LEGACY_DATABASE_URL: postgresAddresses.optional(),
  INTERNAL_LEGACY_MIGRATION_DATABASE_URL: postgresAddresses.optional(),
  SERVICE_PROVIDERS_DATABASE_URL: postgresAddresses.optional(),
  SERVICE_PROVIDERS_MIGRATION_DATABASE_URL: postgresAddresses.optional(),
};

export const migrationConfigSchema = z
  .object({ ...ownerAddressShape, ...lockLimitShape })
  .refine((urls) => urls.DATABASE_URL !== undefined || urls.MIGRATION_DATABASE_URL !== undefined, {
    path: ['DATABASE_URL'],
    message: 'is required',
  });

/** The URLs alone, which the administration commands use too. */
type OwnerAddresses = Readonly<z.output<z.ZodObject<typeof ownerAddressShape>>>;
export type MigrationConfig = OwnerAddresses & Partial<Readonly<z.output<typeof migrationConfigSchema>>>;

/** Returns the URLs for a store's schema: those of its own database, or else the service's. */
export function storeUrls(config: MigrationConfig, store: Store): NodeJS.ProcessEnv {
  const url = config[`${store}_DATABASE_URL`];
  if (url === undefined) return serviceUrls(config);
  return {
    DATABASE_URL: url,
    MIGRATION_DATABASE_URL: config[`${store}_MIGRATION_DATABASE_URL`] ?? url,
    ...lockLimit(config),
  };
}

/** Returns the URLs for the service's own schema. */
export function serviceUrls(config: MigrationConfig): NodeJS.ProcessEnv {
  return {
    DATABASE_URL: config.DATABASE_URL,
    MIGRATION_DATABASE_URL: config.MIGRATION_DATABASE_URL,
    ...lockLimit(config),
  };
}

function lockLimit({ MIGRATION_LOCK_LIMIT_SECONDS: limit }: MigrationConfig): NodeJS.ProcessEnv {
  return limit === undefined ? {} : { MIGRATION_LOCK_LIMIT_SECONDS: String(limit) };
}

/** Returns the URL with which the owner of a store's tables connects. Without a store, the service's own. */
export function ownerUrl(config: MigrationConfig, store?: Store): string {
  const { MIGRATION_DATABASE_URL, DATABASE_URL } =
    store === undefined ? serviceUrls(config) : storeUrls(config, store);
  const url = MIGRATION_DATABASE_URL ?? DATABASE_URL;
  if (url === undefined) throw new TypeError('the schemas of these settings require an address');
  return url;
}
