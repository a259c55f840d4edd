import type { ClientBase, Pool, PoolClient, PoolConfig, QueryResult } from 'pg';
import { EntityManager, QueryRunnerAlreadyReleasedError } from 'typeorm';
import type { DataSource } from 'typeorm';
import { DatabaseUnavailableError, isConnectionError } from './errors';
import { HostsPool } from './hosts-pool';

/** Isolation level of a transaction, under its SQL name. */
export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

/** A statement that the server parses and plans once per connection. `name` is unique within the service. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

/**
 * Returns SQL for an array parameter of a prepared statement, for `unnest` or `= ANY`. The SQL hides the
 * array's length from the planner. Otherwise a short list would look cheaper than the ten members that a
 * cached plan assumes, and PostgreSQL would plan each execution anew, which costs more than running it.
 */
export function listParameter(position: number, type: 'text' | 'uuid' | 'bigint'): string {
  return `(SELECT $${String(position)}::${type}[])::${type}[]`;
}

/** A statement with its parameters, as pg accepts it; prepared if it has a name. */
export interface Query {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
  readonly rowMode?: 'array';
}

/**
 * Runs the look-ups of one event-loop turn on one connection and in one packet. They are pipelined, so none
 * waits for another's response. Each stays its own transaction.
 */
class SharedReads {
  private waiting: { query: Query; resolve: (result: Promise<QueryResult>) => void }[] = [];

  constructor(private readonly pool: Pool) {}

  run(query: Query): Promise<QueryResult> {
    if (this.waiting.length === 0) setImmediate(() => void this.send(this.waiting.splice(0)));
    return new Promise((resolve) => this.waiting.push({ query, resolve }));
  }

  private async send(reads: typeof this.waiting): Promise<void> {
    const connected = this.pool.connect();
    const client = await connected.catch(() => null);
    if (client === null) {
      for (const { resolve } of reads) resolve(connected as Promise<never>);
      return;
    }
    client.on('error', ignore);
    const results = sendPipelined(
      client,
      reads.map(({ query }) => query),
    );
    for (const [i, { resolve }] of reads.entries()) resolve(results[i]!);
    await releaseAfter(client, results);
  }
}

/** Sends statements in one packet, pipelined. */
function sendPipelined(client: PoolClient, queries: readonly (Query | string)[]): Promise<QueryResult>[] {
  const { stream } = client.connection;
  stream.cork();
  const results = queries.map((query) => client.query(query));
  stream.uncork();
  return results;
}

/**
 * Runs one transaction in two packets. The first holds BEGIN and `first`, the second COMMIT and the statement
 * that `next` builds from the rows of `first`. `next` returns at most one statement: of several, one that pg
 * itself refuses to send would not stop the others from being committed.
 */
export async function sendTransaction<Row extends object, Written extends object>(
  dataSource: DataSource,
  first: PreparedStatement & Partial<Pick<Query, 'values'>>,
  next: (rows: Row[]) => Query | null,
): Promise<Written[]> {
  const { pool, defaultIsolation } = PoolDriver.of(dataSource);
  const client = await pool.connect();
  client.on('error', ignore);
  const sent: Promise<QueryResult>[] = [];
  const send = (queries: readonly (Query | string)[]): Promise<QueryResult[]> => {
    const results = sendPipelined(client, queries);
    sent.push(...results);
    return Promise.all(results);
  };
  let isCommitted = false;
  try {
    const [, found] = await send([
      `BEGIN ISOLATION LEVEL ${defaultIsolation}`,
      { ...first, values: first.values ?? [] },
    ]);
    // If the statement fails, COMMIT rolls back and this call throws the statement's error.
    const last = next(found!.rows as Row[]);
    const [written] = await send(last === null ? ['COMMIT'] : [last, 'COMMIT']);
    isCommitted = true;
    return written!.rows as Written[];
  } finally {
    await Promise.allSettled(sent);
    client.off('error', ignore);
    // Closing the connection rolls back an uncommitted transaction.
    client.release(!isCommitted);
  }
}

/** Ignores a lost connection's error event, because its statements fail too. */
const ignore = (): void => undefined;

/** Releases a connection once its statements have settled; closes it if it was lost. */
async function releaseAfter(client: PoolClient, results: readonly Promise<QueryResult>[]): Promise<void> {
  const settled = await Promise.allSettled(results);
  client.off('error', ignore);
  client.release(settled.some((result) => result.status === 'rejected' && isConnectionError(result.reason)));
}

/**
 * Names the isolation level in BEGIN. TypeORM omits it or sends it as a second statement, and behind a pooler
 * the session may lack the default that was set when connecting.
 */
function beginWithIsolation(client: PoolClient, isolation: Isolation): void {
  const { prototype } = client.constructor as { prototype: { query: (...query: unknown[]) => unknown } };
  const begin = `START TRANSACTION ISOLATION LEVEL ${isolation}`;
  const query = (statement: unknown, ...others: unknown[]): unknown =>
    Reflect.apply(prototype.query, client, [
      statement === 'START TRANSACTION' ? begin : statement,
      ...others,
    ]);
  client.query = query as PoolClient['query'];
}

/**
 * The driver for TypeORM: pg, with a pool that is also accessible here, for prepared statements and metrics.
 */
export class PoolDriver {
  /** The constructor that TypeORM calls when it connects. */
  readonly Pool: new (config: PoolConfig) => Pool;
  private current: HostsPool | null = null;
  private reads: SharedReads | null = null;

  /**
   * @param defaultIsolation isolation of transactions that name none
   * @param addresses URLs of the database, one per host
   */
  constructor(
    readonly defaultIsolation: Isolation,
    addresses: readonly string[],
  ) {
    const hold = (pool: HostsPool): void => {
      this.current = pool;
      this.reads = new SharedReads(pool);
    };
    this.Pool = class extends HostsPool {
      constructor(config: PoolConfig) {
        // With `pipeline`, pg closes a connection whose server does not respond within `query_timeout`.
        // Without it, pg would give up only the statement, and the connection's next user would wait behind a
        // response that may never arrive.
        super({ ...config, pipeline: true }, addresses);
        this.on('connect', (client) => beginWithIsolation(client, defaultIsolation));
        hold(this);
      }
    };
  }

  /**
   * Returns the driver of a data source.
   * @throws {TypeError} unless the data source was made with `postgresOptions`
   */
  static of({ options }: DataSource): PoolDriver {
    const driver: unknown = 'driver' in options ? options.driver : undefined;
    if (driver instanceof PoolDriver) return driver;
    throw new TypeError('the data source was not made with postgresOptions');
  }

  /**
   * The pool, even after it was closed.
   * @throws {DatabaseUnavailableError} before the data source has connected
   */
  get pool(): HostsPool {
    if (this.current === null) throw new DatabaseUnavailableError('the data source is not connected');
    return this.current;
  }

  /**
   * Runs a look-up together with the others of this event-loop turn.
   * @throws {DatabaseUnavailableError} before the data source has connected
   */
  read(query: Query): Promise<QueryResult> {
    if (this.reads === null) throw new DatabaseUnavailableError('the data source is not connected');
    return this.reads.run(query);
  }
}

/**
 * Returns the rows of a look-up on a hot path: a statement that changes nothing, waits for no lock and reads
 * a bounded number of rows by key. It shares a connection with the other look-ups of its event-loop turn.
 * @throws as `queryPrepared`
 */
export async function readPrepared<Row extends object>(
  dataSource: DataSource,
  statement: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  const result = await PoolDriver.of(dataSource).read({ ...statement, values: [...values] });
  return result.rows as Row[];
}

/**
 * Returns the rows of a statement on a hot path. The statement bypasses TypeORM's query runner, and is parsed
 * and planned once per connection, because each of these steps costs more than a read by primary key. With a
 * transaction's manager, the statement is part of that transaction. Do not use it on tables that grow and
 * shrink by the minute, which a cached plan does not fit. A PgBouncer that pools by transaction must support
 * prepared statements (1.21 or later, `max_prepared_statements` above 0).
 * @throws the driver's error, for `isConnectionError` and the like
 */
export async function queryPrepared<Row extends object>(
  database: DataSource | EntityManager,
  { name, text }: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  const connection =
    database instanceof EntityManager ? await connectionOf(database) : PoolDriver.of(database).pool;
  return (await connection.query<Row>({ name, text, values: [...values] })).rows;
}

/**
 * Like `readPrepared`, but returns each row as an array in the order of the selected columns: the cheapest
 * form.
 * @throws as `queryPrepared`
 */
export async function readPreparedArrays<Row extends unknown[]>(
  dataSource: DataSource,
  statement: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  const query: Query = { ...statement, values: [...values], rowMode: 'array' };
  return (await PoolDriver.of(dataSource).read(query)).rows as Row[];
}

/**
 * Returns the connection of the manager's transaction. Refuses a transaction that is over, because the
 * manager still holds its former connection.
 */
async function connectionOf({ queryRunner }: EntityManager): Promise<ClientBase> {
  if (queryRunner === undefined) throw new TypeError('the manager belongs to no transaction');
  if (queryRunner.isReleased) throw new QueryRunnerAlreadyReleasedError();
  return (await queryRunner.connect()) as ClientBase;
}
