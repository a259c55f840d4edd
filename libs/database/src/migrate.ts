import { loadConfig } from '@platform/service-defaults';
import { z } from 'zod';
import { waitForDatabase } from './connect';
import { withDatabaseAdvice } from './advice';
import { runMigrations } from './run-migrations';
import type { MigrationOptions, MigrationSettings } from './run-migrations';

/** How long a migration waits for its database to come up. */
const DATABASE_LIMIT_MS = 60_000;

const postgresUrl = z.url({ protocol: /^postgres(ql)?$/, error: 'must be a postgres:// address' });

/** What a migration reads from its environment. */
export const migrationConfigSchema = z
  .object({ DATABASE_URL: postgresUrl.optional(), MIGRATION_DATABASE_URL: postgresUrl.optional() })
  .refine((urls) => urls.DATABASE_URL !== undefined || urls.MIGRATION_DATABASE_URL !== undefined, {
    path: ['DATABASE_URL'],
    message: 'is required',
  });

/**
 * What an app's `migrate.ts` calls. Migrates as the user of MIGRATION_DATABASE_URL (default: DATABASE_URL); then the user
 * of DATABASE_URL gets the grants. Says on standard output what it did.
 * @param limitMs how long it waits for the database to come up
 * @returns names of the migrations applied
 * @throws {ConfigError} naming the variable if neither is set or one is no address; it never carries a value
 * @throws {CommandError} when the database refuses the role or cannot be reached
 */
export async function migrateFromEnvironment(
  settings: Omit<MigrationSettings, 'url'> & Pick<MigrationOptions, 'appRoleGrants'>,
  env: NodeJS.ProcessEnv = process.env,
  limitMs = DATABASE_LIMIT_MS,
): Promise<string[]> {
  const { appRoleGrants, ...database } = settings;
  const { DATABASE_URL: appUrl, MIGRATION_DATABASE_URL } = loadConfig(migrationConfigSchema, env);
  // The schema has seen to it that one of them is there.
  const url = (MIGRATION_DATABASE_URL ?? appUrl)!;
  const appRole = appUrl === undefined ? '' : decodeURIComponent(new URL(appUrl).username);
  const options: MigrationOptions = {
    ...(appRole === '' ? {} : { appRole }),
    ...(appRoleGrants === undefined ? {} : { appRoleGrants }),
  };
  const applied = await withDatabaseAdvice(() =>
    waitForDatabase(() => runMigrations({ ...database, url }, options), limitMs),
  );
  const what = applied.length === 0 ? 'nothing to apply' : `applied ${applied.join(', ')}`;
  process.stdout.write(`${settings.applicationName}: schema ${settings.schema}: ${what}\n`);
  return applied;
}
