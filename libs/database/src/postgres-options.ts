import type { DataSourceOptions, EntityTarget, MigrationInterface, ObjectLiteral } from 'typeorm';

/** A migration class; listed explicitly, because bundles have no folder to search. */
export type MigrationClass = new () => MigrationInterface;
export type PostgresOptions = Extract<DataSourceOptions, { type: 'postgres' }>;

/** What a service says about its database. */
export interface PostgresSettings {
  url: string;
  /** The schema that holds every table of the service, and its `search_path`. */
  schema: string;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  entities: readonly EntityTarget<ObjectLiteral>[];
  migrations: readonly MigrationClass[];
  /** Most connections of this process. */
  poolSize: number;
  /** The server ends a statement after this long; 30 s unless given. */
  statementTimeoutMs?: number;
}

/** TypeORM options for one service's database: bounded waits everywhere, no schema synchronisation. */
export function postgresOptions(settings: PostgresSettings): PostgresOptions {
  throw new Error(`not yet: ${settings.schema}`);
}
