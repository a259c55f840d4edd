import { migrateFromEnvironment } from '@platform/database';
import {
  AUTH_SCHEMA,
  INTERNAL_LEGACY_SCHEMA,
  PERSON_DIRECTORY_SCHEMA,
  SERVICE_PROVIDERS_SCHEMA,
} from './migrations/schemas';
import type { ServiceSchema } from './migrations/schemas';

/** Migrates one schema. A store with a database of its own has its own variables: `<STORE>_DATABASE_URL` and
 *  `<STORE>_MIGRATION_DATABASE_URL`. */
async function migrate({ settings, grants }: ServiceSchema, store?: string): Promise<void> {
  const storeUrl = store === undefined ? undefined : process.env[`${store}_DATABASE_URL`];
  const env = storeUrl
    ? {
        DATABASE_URL: storeUrl,
        MIGRATION_DATABASE_URL: process.env[`${store!}_MIGRATION_DATABASE_URL`] ?? storeUrl,
      }
    : process.env;
  await migrateFromEnvironment({ ...settings, appRoleGrants: grants }, env);
}

async function migrateAll(): Promise<void> {
  await Promise.all([
    migrate(PERSON_DIRECTORY_SCHEMA, 'PERSON_DIRECTORY'),
    migrate(INTERNAL_LEGACY_SCHEMA, 'INTERNAL_LEGACY'),
    migrate(SERVICE_PROVIDERS_SCHEMA, 'SERVICE_PROVIDERS'),
  ]);
  // Last: the service's startup check looks at this schema, and then the others are there too.
  await migrate(AUTH_SCHEMA);
}

// A failure ends the process with a stack trace and a non-zero code, as Node does for any rejected promise.
void migrateAll();
