import { migrateFromEnvironment } from '@platform/database';
import { loadConfig, runCommand } from '@platform/service-defaults';
import type { Store } from './identity/identity';
import { migrationConfigSchema, serviceUrls, storeUrls } from './migrations/migration-settings';
import { AUTH_SCHEMA, STORE_SCHEMAS } from './migrations/schemas';
import type { ServiceSchema } from './migrations/schemas';

async function migrate(
  { settings, grants }: ServiceSchema,
  urls: NodeJS.ProcessEnv,
  isStore: boolean,
): Promise<void> {
  await migrateFromEnvironment({ ...settings, appRoleGrants: grants, isStore }, urls);
}

async function migrateAll(): Promise<void> {
  // Reads the whole configuration before the first migration, so that an invalid setting stops the program
  // before it changes anything.
  const config = loadConfig(migrationConfigSchema);
  const stores = Object.keys(STORE_SCHEMAS) as Store[];
  await Promise.all(stores.map((store) => migrate(STORE_SCHEMAS[store], storeUrls(config, store), true)));
  // The service's own schema is migrated last: its startup check reads this schema only, and a service that
  // passes it can rely on the others.
  await migrate(AUTH_SCHEMA, serviceUrls(config), false);
}

void runCommand('auth-service-migrate', migrateAll);
