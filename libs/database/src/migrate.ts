import { Logger } from '@nestjs/common';
import { addressesOf, loadConfig, postgresAddresses } from '@platform/service-defaults';
import type { Client } from 'pg';
import { DataSource } from 'typeorm';
import { z } from 'zod';
import { waitForDatabase } from './connection-retry';
import { withDatabaseAdvice } from './errors';
import { connectClient } from './hosts-pool';
import { MIGRATIONS_TABLE, postgresOptions, quoteIdentifier } from './postgres-options';
import type { PostgresSettings } from './postgres-options';

/** What happens after the migrations. */
export interface MigrationOptions {
  /** The role that the application connects as; it gets the grants unless it is the migrating role itself. */
  appRole?: string;
  /** Statements that let `quotedRole` use the tables. They run on every migration and must bear it. */
  appRoleGrants?: (quotedRole: string) => string[];
}

/** What `runMigrations` needs to know of the database. */
export type MigrationSettings = Omit<PostgresSettings, 'poolSize' | 'entities'> &
  Partial<Pick<PostgresSettings, 'poolSize' | 'entities'>>;

/** How long a process waits for another one that is migrating. */
const LOCK_TIMEOUT_MS = 300_000;
/** How long a migration waits for its database to come up. */
const DATABASE_LIMIT_MS = 60_000;

/** What a migration reads from its environment. */
export const migrationConfigSchema = z
  .object({
    DATABASE_URL: postgresAddresses.optional(),
    MIGRATION_DATABASE_URL: postgresAddresses.optional(),
  })
  .refine((urls) => urls.DATABASE_URL !== undefined || urls.MIGRATION_DATABASE_URL !== undefined, {
    path: ['DATABASE_URL'],
    message: 'is required',
  });

/** What an app's `migrate.ts` calls. Migrates as the user of MIGRATION_DATABASE_URL (default: DATABASE_URL); then the user of
 *  DATABASE_URL gets the grants. Logs what it did.
 *  @param limitMs how long it waits for the database to come up
 *  @returns names of the migrations applied
 *  @throws {ConfigError} naming the variable if neither is set or one is no address; it never carries a value
 *  @throws {CommandError} when the database refuses the role or cannot be reached */
export async function migrateFromEnvironment(
  settings: Omit<MigrationSettings, 'url'> & Pick<MigrationOptions, 'appRoleGrants'>,
  env: NodeJS.ProcessEnv = process.env,
  limitMs = DATABASE_LIMIT_MS,
): Promise<string[]> {
  const { appRoleGrants, ...database } = settings;
  const { DATABASE_URL: appUrl, MIGRATION_DATABASE_URL } = loadConfig(migrationConfigSchema, env);
  // The schema has seen to it that one of them is there.
  const url = (MIGRATION_DATABASE_URL ?? appUrl)!;
  const appRole = appUrl === undefined ? '' : decodeURIComponent(new URL(addressesOf(appUrl)[0]!).username);
  const options: MigrationOptions = {
    ...(appRole === '' ? {} : { appRole }),
    ...(appRoleGrants === undefined ? {} : { appRoleGrants }),
  };
  const applied = await withDatabaseAdvice(() =>
    waitForDatabase(() => runMigrations({ ...database, url }, options), limitMs),
  );
  const what = applied.length === 0 ? 'nothing to apply' : `applied ${applied.join(', ')}`;
  new Logger('Migrations').log(`schema ${settings.schema}: ${what}`);
  return applied;
}

/** Applies pending migrations, each in its own transaction, and the grants. Any number of processes may call it at once: an advisory
 *  lock lets one of them work (TypeORM takes none), the others then find nothing to do.
 *  @returns names of the migrations applied by this call */
export async function runMigrations(
  settings: MigrationSettings,
  options: MigrationOptions = {},
): Promise<string[]> {
  const lock = await connectClient(settings.url, {
    application_name: `${settings.applicationName}-migrate`,
    lock_timeout: LOCK_TIMEOUT_MS,
  });
  try {
    await warnOfPooler(lock);
    // A session lock: it is gone with the connection, whatever becomes of this process.
    await lock.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [`migrations:${settings.schema}`]);
    await ensureSchema(lock, settings.schema);
    const applied = await applyPending(settings);
    await grant(lock, settings.schema, options);
    return applied;
  } finally {
    await lock.end();
  }
}

/** A pooler gives its clients process ids of its own. When it also moves them between sessions, the lock is one that others may have. */
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

async function applyPending(settings: MigrationSettings): Promise<string[]> {
  const dataSource = new DataSource(
    postgresOptions({ ...settings, entities: settings.entities ?? [], poolSize: 2, statementTimeoutMs: 0 }),
  );
  await dataSource.initialize();
  try {
    const applied = await dataSource.runMigrations({ transaction: 'each' });
    return applied.map(({ name }) => name);
  } finally {
    await dataSource.destroy();
  }
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
  await client.query('BEGIN');
  for (const statement of statements) await client.query(statement);
  await client.query('COMMIT');
}

async function currentRole(client: Client): Promise<string> {
  const { rows } = await client.query<{ role: string }>('SELECT current_user AS role');
  return rows[0]?.role ?? '';
}
