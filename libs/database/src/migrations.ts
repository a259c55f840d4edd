import type { PostgresSettings } from './postgres-options';

export interface MigrationOptions {
  /** Statements that let the application's role use the tables; idempotent, run when it is not the migrating role. */
  appRoleGrants?: (quotedRole: string) => string[];
  /** Role of the application; default: the user of `appUrl`. */
  appUrl?: string;
}

/** Applies pending migrations, one process at a time, and the grants. Returns the names applied. */
export async function runMigrations(
  settings: PostgresSettings,
  options: MigrationOptions = {},
): Promise<string[]> {
  throw new Error(`not yet: ${settings.schema} ${String(options.appUrl)}`);
}

/** What an app's `migrate.ts` calls: MIGRATION_DATABASE_URL (default DATABASE_URL) migrates, DATABASE_URL's user gets the grants. */
export async function migrateFromEnvironment(
  settings: Omit<PostgresSettings, 'url' | 'poolSize'> & MigrationOptions,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string[]> {
  throw new Error(`not yet: ${settings.schema} ${Object.keys(env).length}`);
}
