import { migrateFromEnvironment } from '@platform/database';
import { MIGRATIONS, SCHEMA, appRoleGrants } from './database-layout';

// A failure ends the process with a stack trace and a non-zero code, as Node does for any rejected promise.
void migrateFromEnvironment({
  schema: SCHEMA,
  applicationName: 'task-service-migrate',
  entities: [],
  migrations: MIGRATIONS,
  appRoleGrants,
});
