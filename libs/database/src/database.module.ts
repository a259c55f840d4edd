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
 * TypeOrmModule.forFeature), with health checks and problem responses for outages. Startup waits for the
 * database. Shutdown closes the pool last.
 */
@Module({})
export class DatabaseModule {
  /**
   * @param settings `name` is the data source's name in an app with several. `isBulkhead` marks an additional
   * pool for a database that another data source already checks. It keeps its work from competing for that
   * data source's connections, and registers only metrics.
   */
  static forRoot(settings: PostgresSettings & { name?: string; isBulkhead?: boolean }): DynamicModule {
    const { name, schema, isBulkhead = false } = settings;
    const named = name === undefined ? {} : { name };
    // A named data source is a store of another team, which watches its own server.
    const isOwn = name === undefined && !isBulkhead;
    const guarantees: Guarantees = { weaknesses: 0 };
    const typeOrm = TypeOrmModule.forRootAsync({
      ...named,
      // `waitForDatabase` does the waiting; any other failure is not retried. The name is repeated, because
      // on shutdown @nestjs/typeorm finds the data source by these options.
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

/** The number of weak settings that the server had at startup. */
interface Guarantees {
  weaknesses: number;
}

/**
 * Returns a connected data source.
 * @param guarantees receives the server's weaknesses; null skips that check
 */
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
    'Settings of the server, read at startup, that may lose acknowledged writes',
    ['database'],
    () => [{ labels: { database }, value: guarantees.weaknesses }],
  );
}

/**
 * Registers the health checks. Readiness: the database responds, however busy the pool is, and its sessions
 * have the defaults that the service needs. Startup: every migration of this release is applied.
 */
function registerDatabaseHealth(
  dataSource: DataSource,
  { schema, suffix, isOwn }: { schema: string; suffix: string; isOwn: boolean },
  health: HealthRegistry,
): void {
  health.addReadinessCheck({
    name: `database${suffix}`,
    // Runs on every probe, because a pooler's connections differ in age and may differ in settings.
    check: async () => {
      await (isOwn ? assertSession(dataSource) : PoolDriver.of(dataSource).pool.queryAtOnce('SELECT 1'));
    },
  });
  health.addStartupCheck({
    name: `migrations${suffix}`,
    check: () => assertMigrated(dataSource, schema),
  });
}

/** Maps an outage to 503 with Retry-After. */
function registerDatabaseProblems(mappers: ProblemMappers): void {
  mappers.add((error): Problem | null => {
    if (isConnectionError(error)) return unavailable('The database cannot be reached.');
    if (error instanceof ContentionError)
      return unavailable('Too many concurrent changes of the same thing.');
    // The caller's text passed validation but holds U+0000, so it is the caller's error.
    if (isUnstorableText(error))
      return { status: 400, detail: 'The request holds a character that cannot be stored.' };
    return isStatementTimeout(error) ? unavailable('The database took too long.') : null;
  });
}

/**
 * Checks that every known migration is applied. Unknown newer ones are allowed, because replicas of two
 * versions run side by side.
 * @throws {Error} naming the missing migrations
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
 * Registers Prometheus metrics of one data source's connections and collisions.
 * @param database label that distinguishes this data source from the service's others
 */
export function registerDatabaseMetrics(dataSource: DataSource, database: string, metrics: Metrics): void {
  registerPool(dataSource, database, metrics);
  const retried = metrics.counter(
    'database_transaction_retries_total',
    'Transactions retried after a serialization failure or a deadlock (40001, 40P01)',
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
    'Maximum connections that the pool may open',
    () => pool.options.max ?? 0,
  );
  gauge('database_pool_waiting', 'Requests that wait for a connection of the pool', () => pool.waitingCount);
}
