import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { DatabaseUnavailableError } from './errors';
import { findPool } from './pool';

/** A statement that each connection has the server parse and plan once. `name` is unique within the service. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

/**
 * Rows of a statement on a hot path. It goes to the driver directly: TypeORM's query runner, and parsing and planning the statement
 * anew, cost more than a read by primary key. Not for transactions. A PgBouncer in between that pools by transaction must know
 * prepared statements (1.21 or later, `max_prepared_statements` above 0).
 * @throws the driver's error, which `isConnectionError` and its likes understand
 */
export async function queryPrepared<Row extends object>(
  dataSource: DataSource,
  { name, text }: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  return (await poolOf(dataSource).query<Row>({ name, text, values: [...values] })).rows;
}

/** As `queryPrepared`, each row an array in the order of the selected columns: the cheapest there is.
 *  @throws the driver's error, which `isConnectionError` and its likes understand */
export async function queryPreparedArrays<Row extends unknown[]>(
  dataSource: DataSource,
  { name, text }: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  return (await poolOf(dataSource).query<Row>({ name, text, values: [...values], rowMode: 'array' })).rows;
}

function poolOf(dataSource: DataSource): Pool {
  const pool = findPool(dataSource);
  if (pool === undefined) throw new DatabaseUnavailableError('the data source is not connected');
  return pool;
}
