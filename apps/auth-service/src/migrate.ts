import { migrateFromEnvironment } from '@platform/database';
import { loadConfig, runCommand } from '@platform/service-defaults';
import { migrationConfigSchema, serviceUrls, storeUrls } from './migrations/migration-settings';
import { AUTH_SCHEMA, STORE_SCHEMAS } from './migrations/schemas';
import type { ServiceSchema, Store } from './migrations/schemas';

async function migrate(
  { settings, grants }: ServiceSchema,
  urls: NodeJS.ProcessEnv,
  isStore: boolean,
): Promise<void> {
  await migrateFromEnvironment({ ...settings, appRoleGrants: grants, isStore }, urls);
}

async function migrateAll(): Promise<void> {
  // All of it before the first schema is touched.
  const config = loadConfig(migrationConfigSchema);
  const stores = Object.keys(STORE_SCHEMAS) as Store[];
  await Promise.all(stores.map((store) => migrate(STORE_SCHEMAS[store], storeUrls(config, store), true)));
  // Last: the service's startup check looks at this schema, and then the others are there too.
  await migrate(AUTH_SCHEMA, serviceUrls(config), false);
}

void runCommand('auth-service-migrate', migrateAll);
