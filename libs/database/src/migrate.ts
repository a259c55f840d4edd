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

/** How a migration waits, and what it gives the application's role. */
export interface MigrationOptions {
  /** The role that the application connects as; it gets the grants unless it is the migrating role itself. */
  appRole?: string;
  /** Statements that let `quotedRole` use the tables. They run on every migration and must bear it. */
  appRoleGrants?: (quotedRole: string) => string[];
  /** What sessions of `appRole` begin with; nothing is set unless given. */
  appRoleSettings?: RoleSettings;
  /** The database as `appRole`: a role may change its own settings where the migrating one may not. */
  appUrl?: string;
  /**
   * Limits the wait for its turn, and the waits of each migration and of the grants; 600,000 ms unless given.
   */
  lockLimitMs?: number;
}

/** What `runMigrations` needs to know of the database. */
export type MigrationSettings = Omit<PostgresSettings, 'poolSize' | 'entities'> &
  Partial<Pick<PostgresSettings, 'poolSize' | 'entities'>>;

const DEFAULT_LOCK_LIMIT_SECONDS = 600;
/** How often a process looks whether another one has finished migrating. */
const TURN_POLL_MS = 500;
/** How long a migration waits for its database to come up. */
const DATABASE_LIMIT_MS = 60_000;

/**
 * The variable that limits how long a migration waits for its turn, and for the locks of each migration and
 * of the grants.
 */
export const lockLimitShape = {
  MIGRATION_LOCK_LIMIT_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(86_400)
    .default(DEFAULT_LOCK_LIMIT_SECONDS),
};

/** What a migration reads from its environment. */
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
 * What an app's `migrate.ts` calls. Migrates as the user of MIGRATION_DATABASE_URL (default: DATABASE_URL);
 * then the user of DATABASE_URL gets the grants. Logs what it did.
 * @param settings `isStore`: a further schema of the service, whose role is set up with the service's own
 * @param limitMs how long it waits for the database to come up
 * @returns names of the migrations applied
 * @throws {ConfigError} naming the variable if neither is set or one is no address; it never carries a value
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
  // The schema has seen to it that one of them is there.
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
  const what = applied.length === 0 ? 'nothing to apply' : `applied ${applied.join(', ')}`;
  new Logger('Migrations').log(`schema ${settings.schema}: ${what}`);
  return applied;
}

/**
 * Applies pending migrations, grants, and the settings of the application's role. Each migration has its own
 * transaction unless it says otherwise. Any number of processes may call it at once: TypeORM takes no lock,
 * so an advisory lock lets one work; the others then find nothing to do.
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
    await takeTurn(lock, settings.schema, waiting);
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
 * Waits until no other process migrates this schema. It polls, because a waiting statement would hold a
 * snapshot, and a concurrent index build of the other process would wait for that snapshot. The lock belongs
 * to the session: it goes with the connection, whatever becomes of this process.
 */
async function takeTurn(client: Client, schema: string, { limitMs }: LockWaiting): Promise<void> {
  const startedMs = SYSTEM_CLOCK.monotonicMs();
  for (let isFirst = true; ; isFirst = false) {
    const { rows } = await client.query<{ taken: boolean }>(
      'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken',
      [`migrations:${schema}`],
    );
    if (rows[0]!.taken) return;
    if (isFirst) new Logger('Migrations').log(`schema ${schema}: another process is migrating it`);
    if (SYSTEM_CLOCK.monotonicMs() - startedMs >= limitMs)
      throw new CommandError(
        `another process is still migrating the schema ${schema}: see what it waits for`,
      );
    await sleep(TURN_POLL_MS);
  }
}

/**
 * A pooler gives its clients process ids of its own. When it also moves them between sessions, the lock is
 * one that others may have.
 */
async function warnOfPooler(client: Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  if ('processID' in client && client.processID === rows[0]?.pid) return;
  new Logger('Migrations').warn(
    'a pooler is between the migration and its database: unless it keeps sessions, two migrations may run at once; let MIGRATION_DATABASE_URL name the server',
  );
}

/** CREATE SCHEMA IF NOT EXISTS wants the right to create even when there is nothing to create. */
async function ensureSchema(client: Client, schema: string): Promise<void> {
  const found = await client.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema]);
  if (found.rowCount === 0) await client.query(`CREATE SCHEMA ${quoteIdentifier(schema)}`);
}

/** In one transaction, so that the application never sees half of its rights. */
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
    // The startup check reads it.
    `GRANT SELECT ON ${quotedSchema}.${quoteIdentifier(MIGRATIONS_TABLE)} TO ${role}`,
    ...(appRoleGrants?.(role) ?? []),
  ];
  try {
    await client.query('BEGIN');
    await client.query(`SET LOCAL lock_timeout = ${String(STATEMENT_LOCK_TIMEOUT_MS)}`);
    for (const statement of statements) await client.query(statement);
    await client.query('COMMIT');
  } catch (error) {
    // The error that counts is the first; a lost connection rolls back by itself.
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * Sets the defaults of sessions of the application's role. Where the migrating role may not, the
 * application's role does it itself.
 */
async function setRoleSettings(
  client: Client,
  { appRole, appUrl, appRoleSettings }: MigrationOptions,
): Promise<void> {
  if (appRole === undefined || appRoleSettings === undefined) return;
  // Its limits would hold for migrations too.
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
    if (appUrl === undefined) throw new Error('its address is not known');
    const client = await connectClient(appUrl, {});
    try {
      await runAll(client, statements);
    } finally {
      await client.end();
    }
  } catch (error) {
    const reason = databaseAdvice(error) ?? (error as Error).message;
    new Logger('Migrations').warn(
      `sessions of ${appRole} do not begin with what the service needs behind a pooler (${reason}); as an administrator run: ${statements.join('; ')}`,
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
