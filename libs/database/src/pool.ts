import { Client, Pool } from 'pg';
import type {
  ClientBase,
  PoolConfig,
  QueryArrayConfig,
  QueryArrayResult,
  QueryConfig,
  QueryResult,
  QueryResultRow,
  Submittable,
} from 'pg';
import { EntityManager, QueryRunnerAlreadyReleasedError } from 'typeorm';
import type { DataSource } from 'typeorm';
import { DatabaseUnavailableError } from './errors';

/** Isolation of a transaction, in SQL's words. */
export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

/** A statement that each connection has the server parse and plan once. `name` is unique within the service. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

type Callback = (error: Error, result: never) => void;

/** A connection that ends itself when the server does not respond within `query_timeout`. pg only gives up on the statement: the
 *  connection would go back to the pool, and its next user would wait behind a response that may never come. */
class BoundedClient extends Client {
  override query<T extends Submittable>(statement: T): T;
  override query<R extends unknown[]>(
    statement: QueryArrayConfig,
    values?: unknown[],
  ): Promise<QueryArrayResult<R>>;
  override query<R extends QueryResultRow>(
    statement: string | QueryConfig,
    values?: unknown[],
  ): Promise<QueryResult<R>>;
  override query(statement: string | QueryConfig | QueryArrayConfig, callback: Callback): void;
  override query(text: string, values: unknown[], callback: Callback): void;
  override query(...statement: unknown[]): unknown {
    const result: unknown = super.query(...(statement as [string]));
    // The other form, with a callback, is the pool's own: it removes a connection after any error.
    if (result instanceof Promise) void result.catch((error: Error) => this.endAfterTimeout(error));
    return result;
  }

  /** With a statement under way, `end` does not say goodbye but closes the socket. */
  private endAfterTimeout(error: Error): void {
    if (error.message === 'Query read timeout') void this.end();
  }
}

/** What TypeORM is given as its driver: pg, with a pool that we hold too, for prepared statements and metrics. */
export class PoolDriver {
  /** The constructor that TypeORM calls when it connects. */
  readonly Pool: new (config: PoolConfig) => Pool;
  private current: Pool | null = null;

  /** @param defaultIsolation of the pool's transactions that name none */
  constructor(readonly defaultIsolation: Isolation) {
    const hold = (pool: Pool): void => void (this.current = pool);
    this.Pool = class extends Pool {
      constructor(config: PoolConfig) {
        super({ ...config, Client: BoundedClient });
        hold(this);
      }
    };
  }

  /** The driver of a data source. @throws {TypeError} unless it was made with `postgresOptions` */
  static of({ options }: DataSource): PoolDriver {
    const driver: unknown = 'driver' in options ? options.driver : undefined;
    if (driver instanceof PoolDriver) return driver;
    throw new TypeError('the data source was not made with postgresOptions');
  }

  /** The pool, also after it was closed. @throws {DatabaseUnavailableError} before the data source has connected */
  get pool(): Pool {
    if (this.current === null) throw new DatabaseUnavailableError('the data source is not connected');
    return this.current;
  }
}

/** Rows of a statement on a hot path. It goes to the driver directly: TypeORM's query runner, and parsing and planning the statement
 *  anew, cost more than a read by primary key. With a transaction's manager it is part of that transaction. Its plan is kept: do not
 *  prepare statements on tables that grow and shrink by the minute. A PgBouncer in between that pools by transaction must know prepared
 *  statements (1.21 or later, `max_prepared_statements` above 0).
 *  @throws the driver's error, which `isConnectionError` and its likes understand */
export async function queryPrepared<Row extends object>(
  database: DataSource | EntityManager,
  { name, text }: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  const connection =
    database instanceof EntityManager ? await connectionOf(database) : PoolDriver.of(database).pool;
  return (await connection.query<Row>({ name, text, values: [...values] })).rows;
}

/** As `queryPrepared`, each row an array in the order of the selected columns: the cheapest form.
 *  @throws the driver's error, which `isConnectionError` and its likes understand */
export async function queryPreparedArrays<Row extends unknown[]>(
  dataSource: DataSource,
  { name, text }: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  return (
    await PoolDriver.of(dataSource).pool.query<Row>({ name, text, values: [...values], rowMode: 'array' })
  ).rows;
}

/** The connection of the manager's transaction. A manager still knows it when its transaction is over. */
async function connectionOf({ queryRunner }: EntityManager): Promise<ClientBase> {
  if (queryRunner === undefined) throw new TypeError('the manager belongs to no transaction');
  if (queryRunner.isReleased) throw new QueryRunnerAlreadyReleasedError();
  return (await queryRunner.connect()) as ClientBase;
}
