import { Module } from '@nestjs/common';
import type { DynamicModule } from '@nestjs/common';
import { TypeOrmModule, getDataSourceToken } from '@nestjs/typeorm';
import { HealthRegistry, Metrics, ProblemMappers } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { DataSource } from 'typeorm';
import type { DataSourceOptions } from 'typeorm';
import { waitForDatabase } from './connection-retry';
import { ContentionError, isConnectionError, isStatementTimeout, isUnstorableText } from './errors';
import { PoolDriver } from './pool';
import { MIGRATIONS_TABLE, postgresOptions, quoteIdentifier } from './postgres-options';
import type { PostgresSettings } from './postgres-options';
import { assertSession, warnOfWeaknesses } from './server-guarantees';
import { observeTransactions } from './transaction';

/**
 * A TypeORM data source as Nest providers (`@InjectDataSource`, `@InjectRepository` with
 * TypeOrmModule.forFeature), with health checks and outage answers. Starting waits for the database; closing
 * the application closes the pool, last.
 */
@Module({})
export class DatabaseModule {
  /**
   * @param settings `name` is the data source's name, where an app has more than one. `isBulkhead`: a further
   * pool of a database whose health another one watches, for work that must not compete with others for
   * connections; metrics only
   */
  static forRoot(settings: PostgresSettings & { name?: string; isBulkhead?: boolean }): DynamicModule {
    const { name, schema, isBulkhead = false } = settings;
    const named = name === undefined ? {} : { name };
    // Stores of others are theirs to look after.
    const isOwn = name === undefined && !isBulkhead;
    const guarantees: Guarantees = { weaknesses: 0 };
    const typeOrm = TypeOrmModule.forRootAsync({
      ...named,
      // Waiting is done here; whatever else fails is not worth a second attempt.
      // The name once more: on shutdown @nestjs/typeorm looks the data source up by these options.
      useFactory: () => ({ ...postgresOptions(settings), ...named, retryAttempts: 1 }),
      dataSourceFactory: (options) =>
        waitForDatabase(() => open(options as DataSourceOptions, isOwn ? guarantees : null)),
    });
    const suffix = name === undefined ? '' : `-${name}`;
    return {
      module: DatabaseModule,
      imports: [typeOrm],
      providers: [
        {
          provide: `DATABASE_OBSERVERS${suffix}`,
          inject: [getDataSourceToken(name), HealthRegistry, ProblemMappers, Metrics],
          useFactory: (
            dataSource: DataSource,
            health: HealthRegistry,
            mappers: ProblemMappers,
            metrics: Metrics,
          ) => {
            if (!isBulkhead) registerDatabaseHealth(dataSource, { schema, suffix, isOwn }, health);
            if (!isBulkhead) registerDatabaseProblems(mappers);
            if (isOwn) registerWeaknesses(guarantees, schema, metrics);
            registerDatabaseMetrics(dataSource, name ?? schema, metrics);
            return null;
          },
        },
      ],
      exports: [typeOrm],
    };
  }
}

/** What the server that was there at the start keeps. */
interface Guarantees {
  weaknesses: number;
}

/** A connected data source. @param guarantees where to write what the server keeps; null: nobody asks */
async function open(options: DataSourceOptions, guarantees: Guarantees | null): Promise<DataSource> {
  const dataSource = await new DataSource(options).initialize();
  if (guarantees === null) return dataSource;
  try {
    guarantees.weaknesses = await warnOfWeaknesses(dataSource);
    return dataSource;
  } catch (error) {
    await dataSource.destroy();
    throw error;
  }
}

function registerWeaknesses(guarantees: Guarantees, database: string, metrics: Metrics): void {
  metrics.sampledGauge(
    'database_weaknesses',
    'Settings of the server by which it may lose what it acknowledges, as the service found them when it started',
    ['database'],
    () => [{ labels: { database }, value: guarantees.weaknesses }],
  );
}

/**
 * Readiness: the database answers, however busy the pool is, and its sessions have what the service needs.
 * Startup: every migration that this release knows is applied.
 */
function registerDatabaseHealth(
  dataSource: DataSource,
  { schema, suffix, isOwn }: { schema: string; suffix: string; isOwn: boolean },
  health: HealthRegistry,
): void {
  health.addReadinessCheck({
    name: `database${suffix}`,
    // On every probe: the connections of a pooler are not all of one age, and may differ.
    check: async () => {
      await (isOwn ? assertSession(dataSource) : PoolDriver.of(dataSource).pool.queryAtOnce('SELECT 1'));
    },
  });
  health.addStartupCheck({
    name: `migrations${suffix}`,
    check: () => assertMigrated(dataSource, schema),
  });
}

/** An outage is 503, with when to come back. */
function registerDatabaseProblems(mappers: ProblemMappers): void {
  mappers.add((error): Problem | null => {
    if (isConnectionError(error)) return unavailable('The database cannot be reached.');
    if (error instanceof ContentionError)
      return unavailable('Too many concurrent changes of the same thing.');
    // What the edge has let pass: it is the caller's text that cannot be stored, and no fault of ours.
    if (isUnstorableText(error))
      return { status: 400, detail: 'The request holds a character that cannot be stored.' };
    return isStatementTimeout(error) ? unavailable('The database took too long.') : null;
  });
}

/**
 * @throws {Error} naming the migrations that are missing. Newer ones do no harm: replicas of two versions run
 * side by side.
 */
async function assertMigrated(dataSource: DataSource, schema: string): Promise<void> {
  const expected = dataSource.migrations.map((migration) => migration.name ?? migration.constructor.name);
  const table = `${quoteIdentifier(schema)}.${quoteIdentifier(MIGRATIONS_TABLE)}`;
  const rows = await dataSource.query<{ name: string }[]>(`SELECT name FROM ${table}`);
  const applied = new Set(rows.map(({ name }) => name));
  const missing = expected.filter((name) => !applied.has(name));
  if (missing.length > 0) throw new Error(`migrations not applied: ${missing.join(', ')}`);
}

function unavailable(detail: string): Problem {
  return { status: 503, detail, headers: { 'Retry-After': '1' } };
}

/**
 * Connections and collisions of one data source as Prometheus metrics.
 * @param database what tells it from the others of the service
 */
export function registerDatabaseMetrics(dataSource: DataSource, database: string, metrics: Metrics): void {
  registerPool(dataSource, database, metrics);
  const retried = metrics.counter(
    'database_transaction_retries_total',
    'Transactions repeated because PostgreSQL asked for it (40001, 40P01)',
    ['database'],
  );
  const exhausted = metrics.counter(
    'database_transactions_exhausted_total',
    'Transactions given up because attempts or time ran out; the caller gets 503',
    ['database'],
  );
  for (const counter of [retried, exhausted]) counter.inc({ database }, 0);
  observeTransactions(dataSource, {
    retried: () => retried.inc({ database }),
    exhausted: () => exhausted.inc({ database }),
  });
}

function registerPool(dataSource: DataSource, database: string, metrics: Metrics): void {
  const { pool } = PoolDriver.of(dataSource);
  metrics.sampledGauge(
    'database_pool_connections',
    'Open connections of the pool, by whether they are in use',
    ['database', 'state'],
    () => [
      { labels: { database, state: 'in_use' }, value: pool.totalCount - pool.idleCount },
      { labels: { database, state: 'idle' }, value: pool.idleCount },
    ],
  );
  const gauge = (name: string, help: string, read: () => number): void =>
    metrics.sampledGauge(name, help, ['database'], () => [{ labels: { database }, value: read() }]);
  gauge(
    'database_pool_connections_max',
    'Most connections that the pool may open',
    () => pool.options.max ?? 0,
  );
  gauge('database_pool_waiting', 'Requests that wait for a connection of the pool', () => pool.waitingCount);
}
