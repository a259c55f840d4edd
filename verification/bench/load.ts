import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Dispatcher, Pool } from 'undici';

/** One request of a load. */
export interface LoadRequest {
  readonly method: 'GET' | 'PUT' | 'POST';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The only accepted status. Any other fails the benchmark. */
  readonly expect: number;
}

/** The result of a load. */
export interface LoadResult {
  readonly perSecond: number;
  /** Latency of each piece of work. */
  readonly latenciesMs: readonly number[];
}

/**
 * Repeats `work` with `workers` concurrent workers for about `seconds`.
 * @param work receives the number of the worker and of the repetition, from 0
 */
export async function repeat(
  seconds: number,
  workers: number,
  work: (worker: number, count: number) => Promise<unknown>,
): Promise<LoadResult> {
  const latenciesMs: number[] = [];
  const startedAtMs = performance.now();
  const endsAtMs = startedAtMs + seconds * 1_000;
  const loop = async (worker: number): Promise<void> => {
    for (let count = 0; performance.now() < endsAtMs; count += 1) {
      const begunAtMs = performance.now();
      await work(worker, count);
      latenciesMs.push(performance.now() - begunAtMs);
    }
  };
  await Promise.all(Array.from({ length: workers }, (_none, worker) => loop(worker)));
  return { perSecond: latenciesMs.length / ((performance.now() - startedAtMs) / 1_000), latenciesMs };
}

/** A client that keeps one request in flight on each connection. */
export class HttpLoad {
  readonly #pool: Pool;
  readonly #connections: number;

  constructor(url: string, connections: number) {
    this.#connections = connections;
    this.#pool = new Pool(url, { connections, pipelining: 1 });
  }

  /**
   * Sends requests for `seconds`.
   * @param next receives the number of the connection, and of the request on it
   * @throws {Error} at the first unexpected response
   */
  run(seconds: number, next: (connection: number, count: number) => LoadRequest): Promise<LoadResult> {
    return repeat(seconds, this.#connections, (connection, count) => this.send(next(connection, count)));
  }

  /** Returns a measurement: the maximum number of these requests per second. */
  rate(request: LoadRequest): (seconds: number) => Promise<number> {
    return async (seconds) => (await this.run(seconds, () => request)).perSecond;
  }

  /**
   * Starts `perSecond` requests a second, whether or not earlier ones have a response, like independent
   * callers. Returns the latency of each in ms from the instant at which it was due, with an accuracy of 1
   * ms. Delays in this program count too.
   * @throws {Error} at the first unexpected response
   */
  async runAtRate(
    seconds: number,
    perSecond: number,
    next: (request: number) => LoadRequest,
  ): Promise<number[]> {
    const latenciesMs: number[] = [];
    // Keep only promises in flight. A promise for each request would cause garbage collections during the
    // measurement.
    const inFlight = new Set<Promise<void>>();
    const startedAtMs = performance.now();
    const sendDue = async (request: number, dueAtMs: number): Promise<void> => {
      await this.send(next(request));
      latenciesMs.push(performance.now() - dueAtMs);
    };
    const requests = Math.ceil(seconds * perSecond);
    for (let request = 0; request < requests; request += 1) {
      const dueAtMs = startedAtMs + (request * 1_000) / perSecond;
      while (performance.now() < dueAtMs) await sleep(1);
      const sent = sendDue(request, dueAtMs);
      inFlight.add(sent);
      // A rejected promise stays in the set, so that it is thrown below.
      sent.then(
        () => inFlight.delete(sent),
        () => undefined,
      );
    }
    await Promise.all(inFlight);
    return latenciesMs;
  }

  /** Sends one request and returns the body. @throws {Error} on an unexpected status */
  async send({ expect: expected, ...request }: LoadRequest): Promise<string> {
    const options: Dispatcher.RequestOptions = { ...request, headers: request.headers ?? null };
    const { statusCode, body } = await this.#pool.request(options);
    const text = await body.text();
    if (statusCode === expected) return text;
    throw new Error(`${request.method} ${request.path} returned ${statusCode}: ${text.slice(0, 300)}`);
  }

  /** Sends one request and returns the status. */
  async status(request: Omit<LoadRequest, 'expect'>): Promise<number> {
    const { statusCode, body } = await this.#pool.request({ ...request, headers: request.headers ?? null });
    await body.dump();
    return statusCode;
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

/** Work on one database connection, called repeatedly. */
export type SqlWork = (client: pg.PoolClient, worker: number, count: number) => Promise<unknown>;

/**
 * The bare limit of a service: `pg` alone, with the same concurrency and number of connections as the
 * service.
 */
export class SqlLoad {
  readonly #pool: pg.Pool;
  readonly #workers: number;

  constructor(databaseUrl: string, workers: number, connections = 20) {
    this.#pool = new pg.Pool({ connectionString: databaseUrl, max: connections });
    this.#workers = workers;
  }

  /** Repeats `work` and returns its rate per second. */
  async run(seconds: number, work: SqlWork): Promise<number> {
    const { perSecond } = await repeat(seconds, this.#workers, async (worker, count) => {
      const client = await this.#pool.connect();
      try {
        await work(client, worker, count);
      } finally {
        client.release();
      }
    });
    return perSecond;
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
