import { Logger } from '@nestjs/common';
import { CommandError, addressesOf, loadConfig, postgresAddresses } from '@platform/service-defaults';
import type { Client } from 'pg';
import { sleep, SYSTEM_CLOCK } from '@platform/time';
import { z } from 'zod';
import { waitForDatabase } from './connection-retry';
import { databaseAdvice, isInsufficientPrivilege, withDatabaseAdvice } from './errors';
import { connectClient } from './hosts-pool';
import { STATEMENT_LOCK_TIMEOUT_MS, withLockRetry } from './lock-retry';
import type { LockWaiting } from './lock-retry';
import { applyPending } from './migration-runner';
import { MIGRATIONS_TABLE, postgresOptions, quoteIdentifier, sessionSettings } from './postgres-options';
import type { PostgresSettings, RoleSettings } from './postgres-options';
import { missingRoleSettings } from './role-settings';

/** Options of a migration: its lock waits, and the rights of the application's role. */
export interface MigrationOptions {
  /**
   * The role that the application connects as. It receives the grants unless it is the migrating role itself.
   */
  appRole?: string;
  /**
   * Returns the statements that let `quotedRole` use the tables. They run on every migration, so they must be
   * safe to repeat.
   */
  appRoleGrants?: (quotedRole: string) => string[];
  /** Defaults for the sessions of `appRole`; none are set unless given. */
  appRoleSettings?: RoleSettings;
  /**
   * URL with which to connect as `appRole`. A role may change its own settings even if the migrating role may
   * not.
   */
  appUrl?: string;
  /**
   * Maximum wait for the migration lock, and again for the locks of each migration and of the grants; 600,000
   * ms unless given.
   */
  lockLimitMs?: number;
}

/** The database settings that `runMigrations` needs. */
export type MigrationSettings = Omit<PostgresSettings, 'poolSize' | 'entities'> &
  Partial<Pick<PostgresSettings, 'poolSize' | 'entities'>>;

const DEFAULT_LOCK_LIMIT_SECONDS = 600;
/** Interval at which a process polls for the migration lock. */
const LOCK_POLL_MS = 500;
/** Maximum wait for the database to come up. */
const DATABASE_LIMIT_MS = 60_000;

/**
 * The variable that limits the wait for the migration lock, and for the locks of each migration and of the
 * grants.
 */
export const lockLimitShape = {
  MIGRATION_LOCK_LIMIT_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(86_400)
    .default(DEFAULT_LOCK_LIMIT_SECONDS),
};

/** The environment variables of a migration. */
export const migrationConfigSchema = z
  .object({
    DATABASE_URL: postgresAddresses.optional(),
    MIGRATION_DATABASE_URL: postgresAddresses.optional(),
    ...lockLimitShape,
  })
  .refine((urls) => urls.DATABASE_URL !== undefined || urls.MIGRATION_DATABASE_URL !== undefined, {
    path: ['DATABASE_URL'],
    message: 'is required',
  });

/**
 * Entry point of an app's `migrate.ts`. Migrates as the user of MIGRATION_DATABASE_URL (default:
 * DATABASE_URL), then grants to the user of DATABASE_URL. Logs the result.
 * @param settings `isStore` marks an additional schema of the service. Its role gets its session defaults
 * when the service's own schema is migrated
 * @param limitMs maximum wait for the database to come up
 * @returns names of the migrations applied
 * @throws {ConfigError} naming the variable if neither is set or one is not an address; it never contains a
 * value
 * @throws {CommandError} when the database refuses the role or cannot be reached
 */
export async function migrateFromEnvironment(
  settings: Omit<MigrationSettings, 'url'> & Pick<MigrationOptions, 'appRoleGrants'> & { isStore?: boolean },
  env: NodeJS.ProcessEnv = process.env,
  limitMs = DATABASE_LIMIT_MS,
): Promise<string[]> {
  const { appRoleGrants, isStore = false, ...database } = settings;
  const config = loadConfig(migrationConfigSchema, env);
  const { DATABASE_URL: appUrl, MIGRATION_DATABASE_URL } = config;
  // `migrationConfigSchema` requires one of the two variables.
  const url = (MIGRATION_DATABASE_URL ?? appUrl)!;
  const appRole = appUrl === undefined ? '' : decodeURIComponent(new URL(addressesOf(appUrl)[0]!).username);
  const options: MigrationOptions = {
    ...(appRole === '' ? {} : { appRole }),
    ...(appRoleGrants === undefined ? {} : { appRoleGrants }),
    ...(appUrl === undefined ? {} : { appUrl }),
    ...(isStore ? {} : { appRoleSettings: sessionSettings(database) }),
    lockLimitMs: config.MIGRATION_LOCK_LIMIT_SECONDS * 1_000,
  };
  const applied = await withDatabaseAdvice(() =>
    waitForDatabase(() => runMigrations({ ...database, url }, options), limitMs),
  );
  const result = applied.length === 0 ? 'nothing to apply' : `applied ${applied.join(', ')}`;
  new Logger('Migrations').log(`schema ${settings.schema}: ${result}`);
  return applied;
}

/**
 * Applies pending migrations, grants, and the settings of the application's role. Each migration has its own
 * transaction unless it says otherwise. Any number of processes may call this at once. TypeORM takes no lock,
 * so an advisory lock admits one process at a time; the others then find nothing to do.
 * @returns names of the migrations applied by this call
 * @throws {CommandError} when a lock is not granted in time
 */
export async function runMigrations(
  settings: MigrationSettings,
  options: MigrationOptions = {},
): Promise<string[]> {
  const waiting = { limitMs: options.lockLimitMs ?? DEFAULT_LOCK_LIMIT_SECONDS * 1_000 };
  const lock = await connectClient(settings.url, { application_name: `${settings.applicationName}-migrate` });
  try {
    await warnOfPooler(lock);
    await acquireMigrationLock(lock, settings.schema, waiting);
    await ensureSchema(lock, settings.schema);
    const migrating = postgresOptions({
      ...settings,
      entities: settings.entities ?? [],
      poolSize: 2,
      statementTimeoutMs: 0,
      defaultIsolation: 'READ COMMITTED',
    });
    const applied = await applyPending(migrating, waiting);
    await withLockRetry('grants', () => grant(lock, settings.schema, options), waiting);
    await setRoleSettings(lock, options);
    return applied;
  } finally {
    await lock.end();
  }
}

/**
 * Acquires the migration lock of this schema. It polls, because a waiting statement would hold a snapshot,
 * and a concurrent index build of the other process would wait for that snapshot. The lock belongs to the
 * session, so it is released with the connection even if this process crashes.
 */
async function acquireMigrationLock(client: Client, schema: string, { limitMs }: LockWaiting): Promise<void> {
  const startedMs = SYSTEM_CLOCK.monotonicMs();
  for (let isFirst = true; ; isFirst = false) {
    const { rows } = await client.query<{ acquired: boolean }>(
      'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS acquired',
      [`migrations:${schema}`],
    );
    if (rows[0]!.acquired) return;
    if (isFirst) new Logger('Migrations').log(`schema ${schema}: another process is migrating it`);
    if (SYSTEM_CLOCK.monotonicMs() - startedMs >= limitMs)
      throw new CommandError(
        `another process is still migrating the schema ${schema}: see in pg_stat_activity what it waits for`,
      );
    await sleep(LOCK_POLL_MS);
  }
}

/**
 * Warns if a pooler is between this process and the server. A pooler gives its clients process ids that
 * differ from the server's. If it also moves clients between sessions, two migrations may share the session
 * that holds the lock.
 */
async function warnOfPooler(client: Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  if ('processID' in client && client.processID === rows[0]?.pid) return;
  new Logger('Migrations').warn(
    'a pooler is between the migration and its database: unless it pools by session, two migrations may run at once; set MIGRATION_DATABASE_URL to the server itself',
  );
}

/**
 * Creates the schema if it is missing. Looks for it first, because CREATE SCHEMA IF NOT EXISTS requires the
 * CREATE privilege even if the schema exists.
 */
async function ensureSchema(client: Client, schema: string): Promise<void> {
  const found = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  if (found.rowCount === 0) await client.query(`CREATE SCHEMA ${quoteIdentifier(schema)}`);
}

/** Grants in one transaction, so that the application never sees half of its rights. */
async function grant(
  client: Client,
  schema: string,
  { appRole, appRoleGrants }: MigrationOptions,
): Promise<void> {
  if (appRole === undefined || appRole === (await currentRole(client))) return;
  const role = quoteIdentifier(appRole);
  const quotedSchema = quoteIdentifier(schema);
  const statements = [
    `GRANT USAGE ON SCHEMA ${quotedSchema} TO ${role}`,
    // The startup check reads this table.
    `GRANT SELECT ON ${quotedSchema}.${quoteIdentifier(MIGRATIONS_TABLE)} TO ${role}`,
    ...(appRoleGrants?.(role) ?? []),
  ];
  try {
    await client.query('BEGIN');
    await client.query(`SET LOCAL lock_timeout = ${String(STATEMENT_LOCK_TIMEOUT_MS)}`);
    for (const statement of statements) await client.query(statement);
    await client.query('COMMIT');
  } catch (error) {
    // Throw the first error, not the rollback's; a lost connection rolls back by itself.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * Sets the session defaults of the application's role. If the migrating role may not, the application's role
 * sets them itself.
 */
async function setRoleSettings(
  client: Client,
  { appRole, appUrl, appRoleSettings }: MigrationOptions,
): Promise<void> {
  if (appRole === undefined || appRoleSettings === undefined) return;
  // Limits set for this role would apply to migrations too.
  if (appRole === (await currentRole(client))) return;
  const statements = await missingRoleSettings(client, appRole, appRoleSettings);
  if (statements.length === 0) return;
  try {
    await runAll(client, statements);
  } catch (error) {
    if (!isInsufficientPrivilege(error)) throw error;
    await setOwnSettings(appUrl, appRole, statements);
  }
}

async function setOwnSettings(
  appUrl: string | undefined,
  appRole: string,
  statements: string[],
): Promise<void> {
  try {
    if (appUrl === undefined) throw new Error('DATABASE_URL is not set');
    const client = await connectClient(appUrl, {});
    try {
      await runAll(client, statements);
    } finally {
      await client.end();
    }
  } catch (error) {
    const reason = databaseAdvice(error) ?? (error as Error).message;
    new Logger('Migrations').warn(
      `sessions of ${appRole} lack defaults that the service needs behind a pooler (${reason}); as an administrator run: ${statements.join('; ')}`,
    );
  }
}

async function runAll(client: Client, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await client.query(statement);
}

async function currentRole(client: Client): Promise<string> {
  const { rows } = await client.query<{ role: string }>('SELECT current_user AS role');
  return rows[0]?.role ?? '';
}
