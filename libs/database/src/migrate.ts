import { waitForDatabase } from './connect';
import { runMigrations } from './run-migrations';
import type { MigrationOptions, MigrationSettings } from './run-migrations';

/** How long a migration waits for its database to come up. */
const DATABASE_LIMIT_MS = 60_000;

/**
 * What an app's `migrate.ts` calls. Migrates as the user of MIGRATION_DATABASE_URL (default: DATABASE_URL); then the user
 * of DATABASE_URL gets the grants. Says on standard output what it did.
 * @returns names of the migrations applied
 * @throws {Error} naming the variable if neither is set
 */
export async function migrateFromEnvironment(
  settings: Omit<MigrationSettings, 'url'> & Pick<MigrationOptions, 'appRoleGrants'>,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string[]> {
  const { appRoleGrants, ...database } = settings;
  const appUrl = env.DATABASE_URL || undefined;
  const url = env.MIGRATION_DATABASE_URL || appUrl;
  if (url === undefined) throw new Error('DATABASE_URL (or MIGRATION_DATABASE_URL) is required');
  const appRole = appUrl === undefined ? '' : decodeURIComponent(new URL(appUrl).username);
  const options: MigrationOptions = {
    ...(appRole === '' ? {} : { appRole }),
    ...(appRoleGrants === undefined ? {} : { appRoleGrants }),
  };
  const applied = await waitForDatabase(
    () => runMigrations({ ...database, url }, options),
    DATABASE_LIMIT_MS,
  );
  const what = applied.length === 0 ? 'nothing to apply' : `applied ${applied.join(', ')}`;
  process.stdout.write(`${settings.applicationName}: schema ${settings.schema}: ${what}\n`);
  return applied;
}
