import pg from 'pg';
import { type Dispatcher, Pool } from 'undici';

/** One request of a load; a function of its number, so that each can differ. */
export interface LoadRequest {
  readonly method: 'GET' | 'PUT' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The only status that counts as done; any other ends the benchmark. */
  readonly expect: number;
}

/** What a load came to. */
export interface LoadResult {
  readonly requestsPerSecond: number;
  /** Latency of every request, in milliseconds. */
  readonly latenciesMs: readonly number[];
}

/** A client that keeps one request in flight on each connection. */
export class HttpLoad {
  readonly #pool: Pool;
  readonly #connections: number;

  constructor(url: string, connections: number) {
    this.#connections = connections;
    this.#pool = new Pool(url, { connections, pipelining: 1 });
  }

  /** Sends requests for `seconds`. `next` is called with the number of the connection and of the request on it.
   *  @throws {Error} at the first answer that is not the expected one */
  async run(seconds: number, next: (connection: number, count: number) => LoadRequest): Promise<LoadResult> {
    const latenciesMs: number[] = [];
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + seconds * 1_000;
    const work = async (connection: number): Promise<void> => {
      for (let count = 0; performance.now() < endsAtMs; count += 1) {
        const sentAtMs = performance.now();
        await this.send(next(connection, count));
        latenciesMs.push(performance.now() - sentAtMs);
      }
    };
    await Promise.all(Array.from({ length: this.#connections }, (_none, connection) => work(connection)));
    const tookSeconds = (performance.now() - startedAtMs) / 1_000;
    return { requestsPerSecond: latenciesMs.length / tookSeconds, latenciesMs };
  }

  /** One request; gives the body. @throws {Error} when the status is not the expected one */
  async send({ expect: expected, ...request }: LoadRequest): Promise<string> {
    const options: Dispatcher.RequestOptions = { ...request, headers: request.headers ?? null };
    const { statusCode, body } = await this.#pool.request(options);
    const text = await body.text();
    if (statusCode === expected) return text;
    throw new Error(`${request.method} ${request.path} answered ${statusCode}: ${text.slice(0, 300)}`);
  }

  /** One request; gives the status, whatever it is. */
  async status(request: Omit<LoadRequest, 'expect'>): Promise<number> {
    const { statusCode, body } = await this.#pool.request({ ...request, headers: request.headers ?? null });
    await body.dump();
    return statusCode;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

/** Work on one database connection; called over and over. */
export type SqlWork = (client: pg.PoolClient, worker: number, count: number) => Promise<unknown>;

/** The bare limit under a service: `pg` and nothing else, as many in flight and as many connections as the service has. */
export class SqlLoad {
  readonly #pool: pg.Pool;
  readonly #workers: number;

  constructor(databaseUrl: string, workers: number, connections = 20) {
    this.#pool = new pg.Pool({ connectionString: databaseUrl, max: connections });
    this.#workers = workers;
  }

  /** How often `work` was done per second. */
  async run(seconds: number, work: SqlWork): Promise<number> {
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + seconds * 1_000;
    let done = 0;
    const loop = async (worker: number): Promise<void> => {
      for (let count = 0; performance.now() < endsAtMs; count += 1) {
        const client = await this.#pool.connect();
        try {
          await work(client, worker, count);
        } finally {
          client.release();
        }
        done += 1;
      }
    };
    await Promise.all(Array.from({ length: this.#workers }, (_none, worker) => loop(worker)));
    return done / ((performance.now() - startedAtMs) / 1_000);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}

/** Runs statements on the database, e.g. to fill it. */
export async function runSql(databaseUrl: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
