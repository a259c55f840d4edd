import { migrateFromEnvironment } from '@platform/database';
import { runCommand } from '@platform/service-defaults';
import { MIGRATIONS, SCHEMA, appRoleGrants } from './database-layout';

void runCommand('task-service-migrate', () =>
  migrateFromEnvironment({
    schema: SCHEMA,
    applicationName: 'task-service-migrate',
    entities: [],
    migrations: MIGRATIONS,
    appRoleGrants,
  }),
);
