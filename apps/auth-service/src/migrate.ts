import { migrateFromEnvironment } from '@platform/database';
import { loadConfig, runCommand } from '@platform/service-defaults';
import { migrationConfigSchema, serviceUrls, storeUrls } from './migrations/migration-settings';
import {
  AUTH_SCHEMA,
  INTERNAL_LEGACY_SCHEMA,
  PERSON_DIRECTORY_SCHEMA,
  SERVICE_PROVIDERS_SCHEMA,
} from './migrations/schemas';
import type { ServiceSchema } from './migrations/schemas';

async function migrate({ settings, grants }: ServiceSchema, urls: NodeJS.ProcessEnv): Promise<void> {
  await migrateFromEnvironment({ ...settings, appRoleGrants: grants }, urls);
}

async function migrateAll(): Promise<void> {
  // All of it before the first schema is touched.
  const config = loadConfig(migrationConfigSchema);
  await Promise.all([
    migrate(PERSON_DIRECTORY_SCHEMA, storeUrls(config, 'PERSON_DIRECTORY')),
    migrate(INTERNAL_LEGACY_SCHEMA, storeUrls(config, 'INTERNAL_LEGACY')),
    migrate(SERVICE_PROVIDERS_SCHEMA, storeUrls(config, 'SERVICE_PROVIDERS')),
  ]);
  // Last: the service's startup check looks at this schema, and then the others are there too.
  await migrate(AUTH_SCHEMA, serviceUrls(config));
}

void runCommand(migrateAll);
