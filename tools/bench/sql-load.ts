import pg from 'pg';

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
