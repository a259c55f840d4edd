import type { ClientBase, Pool, PoolClient, PoolConfig, QueryResult } from 'pg';
import { EntityManager, QueryRunnerAlreadyReleasedError } from 'typeorm';
import type { DataSource } from 'typeorm';
import { DatabaseUnavailableError, isConnectionError } from './errors';
import { HostsPool } from './hosts-pool';

/** Isolation of a transaction, in SQL's words. */
export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

/**
 * A statement that each connection has the server parse and plan once. `name` is unique within the service.
 */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

/**
 * SQL: an array parameter of a prepared statement, for `unnest` or `= ANY`. PostgreSQL does not see its
 * length: it would find that a short list costs less than the ten members that a kept plan assumes, and plan
 * the statement anew each time, at more than the cost of its work.
 */
export function listParameter(position: number, type: 'text' | 'uuid' | 'bigint'): string {
  return `(SELECT $${String(position)}::${type}[])::${type}[]`;
}

/** A statement with its parameters, as pg takes it; prepared if it has a name. */
export interface Query {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
  readonly rowMode?: 'array';
}

/**
 * Look-ups that come in one turn of the event loop share a connection and a packet: they are sent one behind
 * the other, and none waits for another's response. Each stays a transaction by itself.
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
    const results = sendTogether(
      client,
      reads.map(({ query }) => query),
    );
    for (const [i, { resolve }] of reads.entries()) resolve(results[i]!);
    await releaseAfter(client, results);
  }
}

/** Sends statements one behind the other, in one packet. */
function sendTogether(client: PoolClient, queries: readonly (Query | string)[]): Promise<QueryResult>[] {
  const { stream } = client.connection;
  stream.cork();
  const results = queries.map((query) => client.query(query));
  stream.uncork();
  return results;
}

/**
 * One transaction in two packets: `first` goes with BEGIN, what `next` makes of its rows with COMMIT. That is
 * one statement: of several, one that pg itself refuses to send would not keep the others from being
 * committed.
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
    const results = sendTogether(client, queries);
    sent.push(...results);
    return Promise.all(results);
  };
  let isCommitted = false;
  try {
    const [, found] = await send([
      `BEGIN ISOLATION LEVEL ${defaultIsolation}`,
      { ...first, values: first.values ?? [] },
    ]);
    // A statement that fails turns COMMIT into a rollback, and this into its error.
    const last = next(found!.rows as Row[]);
    const [written] = await send(last === null ? ['COMMIT'] : [last, 'COMMIT']);
    isCommitted = true;
    return written!.rows as Written[];
  } finally {
    await Promise.allSettled(sent);
    client.off('error', ignore);
    // The server rolls back what a closed connection leaves.
    client.release(!isCommitted);
  }
}

/** A lost connection fails its statements too. */
const ignore = (): void => undefined;

/** Gives a connection back; one that failed is closed. */
async function releaseAfter(client: PoolClient, results: readonly Promise<QueryResult>[]): Promise<void> {
  const settled = await Promise.allSettled(results);
  client.off('error', ignore);
  client.release(settled.some((result) => result.status === 'rejected' && isConnectionError(result.reason)));
}

/**
 * TypeORM begins a transaction without a level, or sends the level as a second statement. Here BEGIN names
 * it: behind a pooler the session may lack the default that we asked for when we connected.
 */
function nameIsolation(client: PoolClient, isolation: Isolation): void {
  const { prototype } = client.constructor as { prototype: { query: (...query: unknown[]) => unknown } };
  const begin = `START TRANSACTION ISOLATION LEVEL ${isolation}`;
  const query = (first: unknown, ...others: unknown[]): unknown =>
    Reflect.apply(prototype.query, client, [first === 'START TRANSACTION' ? begin : first, ...others]);
  client.query = query as PoolClient['query'];
}

/**
 * What TypeORM is given as its driver: pg, with a pool that we hold too, for prepared statements and metrics.
 */
export class PoolDriver {
  /** The constructor that TypeORM calls when it connects. */
  readonly Pool: new (config: PoolConfig) => Pool;
  private current: HostsPool | null = null;
  private reads: SharedReads | null = null;

  /** @param defaultIsolation of the pool's transactions that name none
   *  @param addresses of the database, one per host */
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
        // With `pipeline` pg also closes a connection whose server does not respond within `query_timeout`.
        // Else it would only give up on the statement, and the connection's next user would wait behind a
        // response that may never come.
        super({ ...config, pipeline: true }, addresses);
        this.on('connect', (client) => nameIsolation(client, defaultIsolation));
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

  /**
   * The pool, also after it was closed.
   * @throws {DatabaseUnavailableError} before the data source has connected
   */
  get pool(): HostsPool {
    if (this.current === null) throw new DatabaseUnavailableError('the data source is not connected');
    return this.current;
  }

  /**
   * Runs a look-up, together with others of this turn.
   * @throws {DatabaseUnavailableError} before the data source has connected
   */
  read(query: Query): Promise<QueryResult> {
    if (this.reads === null) throw new DatabaseUnavailableError('the data source is not connected');
    return this.reads.run(query);
  }
}

/**
 * Rows of a look-up on a hot path: a statement that changes nothing, waits for no lock and reads a bounded
 * number of rows by key. It shares a connection with others of its turn.
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
 * Rows of a statement on a hot path. It goes to the driver directly: TypeORM's query runner, and parsing and
 * planning the statement anew, cost more than a read by primary key. With a transaction's manager it is part
 * of that transaction. Its plan is kept: do not prepare statements on tables that grow and shrink by the
 * minute. A PgBouncer in between that pools by transaction must know prepared statements (1.21 or later,
 * `max_prepared_statements` above 0).
 * @throws the driver's error, which `isConnectionError` and its likes understand
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

/** As `readPrepared`, each row an array in the order of the selected columns: the cheapest form.
 *  @throws as `queryPrepared` */
export async function readPreparedArrays<Row extends unknown[]>(
  dataSource: DataSource,
  statement: PreparedStatement,
  values: readonly unknown[],
): Promise<Row[]> {
  const query: Query = { ...statement, values: [...values], rowMode: 'array' };
  return (await PoolDriver.of(dataSource).read(query)).rows as Row[];
}

/** The connection of the manager's transaction. A manager still knows it when its transaction is over. */
async function connectionOf({ queryRunner }: EntityManager): Promise<ClientBase> {
  if (queryRunner === undefined) throw new TypeError('the manager belongs to no transaction');
  if (queryRunner.isReleased) throw new QueryRunnerAlreadyReleasedError();
  return (await queryRunner.connect()) as ClientBase;
}
