import type { Metrics } from '@platform/service-defaults';
import type { DataSource } from 'typeorm';
import { findPool } from './pool';
import { observeTransactions } from './transaction';

/** Connections and collisions of one data source as Prometheus metrics. @param database what tells it from the others of the service */
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
  metrics.sampledGauge(
    'database_pool_connections',
    'Open connections of the pool, by whether they are in use',
    ['database', 'state'],
    () => {
      const { totalCount = 0, idleCount = 0 } = findPool(dataSource) ?? {};
      return [
        { labels: { database, state: 'in_use' }, value: totalCount - idleCount },
        { labels: { database, state: 'idle' }, value: idleCount },
      ];
    },
  );
  metrics.sampledGauge(
    'database_pool_connections_max',
    'Most connections that the pool may open',
    ['database'],
    () => [{ labels: { database }, value: findPool(dataSource)?.options.max ?? 0 }],
  );
  metrics.sampledGauge(
    'database_pool_waiting',
    'Requests that wait for a connection of the pool',
    ['database'],
    () => [{ labels: { database }, value: findPool(dataSource)?.waitingCount ?? 0 }],
  );
}
