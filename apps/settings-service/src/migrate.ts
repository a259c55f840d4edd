import { migrateFromEnvironment } from '@platform/database';
import { runCommand } from '@platform/service-defaults';
import { DEFAULT_ISOLATION, MIGRATIONS, SCHEMA, appRoleGrants } from './database-layout';

void runCommand('settings-service-migrate', () =>
  migrateFromEnvironment({
    schema: SCHEMA,
    applicationName: 'settings-service-migrate',
    entities: [],
    migrations: MIGRATIONS,
    appRoleGrants,
    defaultIsolation: DEFAULT_ISOLATION,
  }),
);
