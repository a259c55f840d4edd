import { setTimeout as sleep } from 'node:timers/promises';
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

/** The result of a load. */
export interface LoadResult {
  readonly perSecond: number;
  /** Of every piece of work, in milliseconds. */
  readonly latenciesMs: readonly number[];
}

/**
 * Has each of `workers` repeat `work` for about `seconds`.
 * @param work gets the number of the worker, and of its repetition from 0
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
   * Sends requests for `seconds`. `next` is called with the number of the connection and of the request on
   * it.
   * @throws {Error} at the first response that is not the expected one
   */
  run(seconds: number, next: (connection: number, count: number) => LoadRequest): Promise<LoadResult> {
    return repeat(seconds, this.#connections, (connection, count) => this.send(next(connection, count)));
  }

  /** A measurement: as many of this request per second as it can send. */
  rate(request: LoadRequest): (seconds: number) => Promise<number> {
    return async (seconds) => (await this.run(seconds, () => request)).perSecond;
  }

  /**
   * Starts `perSecond` requests a second whether or not those before have been answered, as callers do that
   * know nothing of each other. Gives the latency of each in ms from the instant at which it was due, to the
   * millisecond: whatever held it up counts, this program too.
   * @throws {Error} at the first response that is not the expected one
   */
  async runAtRate(
    seconds: number,
    perSecond: number,
    next: (request: number) => LoadRequest,
  ): Promise<number[]> {
    const latenciesMs: number[] = [];
    // Only what is in flight: a promise kept for each request would make this program collect garbage while
    // it measures.
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
      // A failed one stays and is thrown below.
      sent.then(
        () => inFlight.delete(sent),
        () => undefined,
      );
    }
    await Promise.all(inFlight);
    return latenciesMs;
  }

  /** One request; returns the body. @throws {Error} when the status is not the expected one */
  async send({ expect: expected, ...request }: LoadRequest): Promise<string> {
    const options: Dispatcher.RequestOptions = { ...request, headers: request.headers ?? null };
    const { statusCode, body } = await this.#pool.request(options);
    const text = await body.text();
    if (statusCode === expected) return text;
    throw new Error(`${request.method} ${request.path} returned ${statusCode}: ${text.slice(0, 300)}`);
  }

  /** One request; returns the status, whatever it is. */
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

/**
 * The bare limit under a service: `pg` and nothing else, as many in flight and as many connections as the
 * service has.
 */
export class SqlLoad {
  readonly #pool: pg.Pool;
  readonly #workers: number;

  constructor(databaseUrl: string, workers: number, connections = 20) {
    this.#pool = new pg.Pool({ connectionString: databaseUrl, max: connections });
    this.#workers = workers;
  }

  /** How often `work` was done per second. */
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
