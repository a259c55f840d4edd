import type { ClientBase, Pool } from 'pg';
import { EntityManager, QueryRunnerAlreadyReleasedError } from 'typeorm';
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
 * anew, cost more than a read by primary key. With a transaction's manager it is part of that transaction. Its plan outlives what it was
 * made for: leave statements to be planned anew whose tables grow and shrink by the minute. A PgBouncer in between that pools by transaction must know
 * prepared statements (1.21 or later, `max_prepared_statements` above 0).
 * @throws the driver's error, which `isConnectionError` and its likes understand
 */
export async function queryPrepared<Row extends object>(
  database: DataSource | EntityManager,
  { name, text }: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  const connection = database instanceof EntityManager ? await connectionOf(database) : poolOf(database);
  return (await connection.query<Row>({ name, text, values: [...values] })).rows;
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

/** The connection of the manager's transaction, which a manager whose transaction is over still knows. */
async function connectionOf({ queryRunner }: EntityManager): Promise<ClientBase> {
  if (queryRunner === undefined) throw new TypeError('the manager belongs to no transaction');
  if (queryRunner.isReleased) throw new QueryRunnerAlreadyReleasedError();
  return (await queryRunner.connect()) as ClientBase;
}

function poolOf(dataSource: DataSource): Pool {
  const pool = findPool(dataSource);
  if (pool === undefined) throw new DatabaseUnavailableError('the data source is not connected');
  return pool;
}
