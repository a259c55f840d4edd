import { Logger } from '@nestjs/common';
import { addressesOf } from '@platform/service-defaults';
import type { DataSourceOptions, EntityTarget, MigrationInterface, ObjectLiteral } from 'typeorm';
import { PoolDriver } from './pool';
import type { Isolation } from './pool';

/** A migration class. Migrations are listed explicitly, because bundles have no folder to search. */
type MigrationClass = new () => MigrationInterface;
/** TypeORM's options for PostgreSQL. */
export type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

/** Name of the table that records applied migrations, in the service's schema. */
export const MIGRATIONS_TABLE = 'migrations';

/** Maximum wait for connecting, and for a free connection of the pool. */
const CONNECT_TIMEOUT_MS = 3_000;
const STATEMENT_TIMEOUT_MS = 10_000;
/** Time that the client waits beyond the server's limit before it considers the server lost. */
const READ_MARGIN_MS = 2_000;
/** Limits how long a stopped process can hold row locks. */
const IDLE_IN_TRANSACTION_TIMEOUT_MS = 30_000;
const IDLE_CONNECTION_MS = 60_000;

/** A service's database settings. */
export interface PostgresSettings {
  url: string;
  /** The schema of all the service's tables, and its `search_path`. */
  schema: string;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  entities: readonly EntityTarget<ObjectLiteral>[];
  migrations: readonly MigrationClass[];
  /** Maximum connections of this process. */
  poolSize: number;
  /**
   * Limit in milliseconds after which the server cancels a statement; 10,000 unless given, 0 for no limit.
   */
  statementTimeoutMs?: number;
  /**
   * Isolation of transactions that do not name one, including single statements; PostgreSQL's READ COMMITTED
   * unless given.
   */
  defaultIsolation?: Isolation;
}

/**
 * Returns TypeORM options for one service's database: every wait is bounded, the schema is never
 * synchronised, and statements are not logged.
 */
export function postgresOptions(settings: PostgresSettings): PostgresOptions {
  const parts = addressesOf(settings.url).map(withoutServerOptions);
  const [{ url, options }] = parts as [(typeof parts)[0]];
  const { defaultIsolation = 'READ COMMITTED' } = settings;
  return {
    type: 'postgres',
    driver: new PoolDriver(
      defaultIsolation,
      parts.map((part) => part.url),
    ),
    url,
    schema: settings.schema,
    applicationName: settings.applicationName,
    entities: [...settings.entities] as NonNullable<PostgresOptions['entities']>,
    migrations: [...settings.migrations],
    migrationsTableName: MIGRATIONS_TABLE,
    migrationsTransactionMode: 'each',
    synchronize: false,
    logging: false,
    installExtensions: false,
    uuidExtension: 'pgcrypto',
    poolSize: settings.poolSize,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    poolErrorHandler: (error: unknown) => new Logger('Database').warn(error),
    extra: {
      ...timeouts(settings.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS),
      idleTimeoutMillis: IDLE_CONNECTION_MS,
      keepAlive: true,
      options: [
        options,
        serverOption('search_path', quoteIdentifier(settings.schema)),
        serverOption('default_transaction_isolation', defaultIsolation),
      ]
        .join(' ')
        .trim(),
    },
  };
}

/** Session defaults of a service's role, under PostgreSQL's names. */
export type RoleSettings = Readonly<Record<string, string>>;

/**
 * Returns the defaults that every session of the service needs. The service requests them when it connects,
 * but a pooler does not pass them on, so behind one they must be settings of the role.
 */
export function sessionSettings({
  schema,
  statementTimeoutMs = STATEMENT_TIMEOUT_MS,
  defaultIsolation = 'READ COMMITTED',
}: Pick<PostgresSettings, 'schema' | 'statementTimeoutMs' | 'defaultIsolation'>): RoleSettings {
  return {
    default_transaction_isolation: defaultIsolation.toLowerCase(),
    search_path: schema,
    statement_timeout: `${String(statementTimeoutMs)}ms`,
    idle_in_transaction_session_timeout: `${String(IDLE_IN_TRANSACTION_TIMEOUT_MS)}ms`,
  };
}

/** Returns an SQL identifier in quotes. */
export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

function timeouts(statementTimeoutMs: number): object {
  if (statementTimeoutMs === 0) return {};
  return {
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + READ_MARGIN_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
  };
}

/**
 * Splits `options` off a URL, so that they can be joined with ours: pg would let those of the URL override
 * ours.
 */
function withoutServerOptions(text: string): { url: string; options: string } {
  const url = new URL(text);
  const options = url.searchParams.get('options');
  if (options === null) return { url: text, options: '' };
  url.searchParams.delete('options');
  return { url: url.toString(), options };
}

/** Returns a server option with its spaces escaped, because the server splits options at spaces. */
function serverOption(name: string, value: string): string {
  return `-c ${name}=${value.replace(/[\\ ]/g, '\\$&')}`;
}
