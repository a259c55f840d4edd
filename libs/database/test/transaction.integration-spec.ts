import { Metrics } from '@platform/service-defaults';
import { createTestDatabase, eventually } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { DataSource, EntityManager } from 'typeorm';
import {
  ContentionError,
  PoolDriver,
  inTransaction,
  inTwoRoundTrips,
  isConnectionError,
  isUniqueViolation,
} from '../src';
import type { Query } from '../src';
import { registerDatabaseMetrics } from '../src/database.module';
import { connectCounters, migrateCounters } from './counters';

async function increment(manager: EntityManager): Promise<number> {
  const [row] = await manager.query<{ value: number }[]>("SELECT value FROM counter WHERE name = 'hits'");
  const next = (row?.value ?? 0) + 1;
  await manager.query("UPDATE counter SET value = $1 WHERE name = 'hits'", [next]);
  return next;
}

describe('inTransaction', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let replica: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateCounters });
    [dataSource, replica] = await Promise.all([connectCounters(database.url), connectCounters(database.url)]);
  });

  beforeEach(() => database.query("UPDATE counting.counter SET value = 0 WHERE name = 'hits'"));

  afterAll(async () => {
    await Promise.all([dataSource.destroy(), replica.destroy()]);
    await database.drop();
  });

  const value = async (): Promise<unknown> =>
    (await database.query("SELECT value FROM counting.counter WHERE name = 'hits'"))[0]?.value;

  it('lets 50 concurrent increments of one row succeed under REPEATABLE READ', async () => {
    const results = await Promise.all(
      Array.from({ length: 50 }, () =>
        inTransaction(dataSource, 'REPEATABLE READ', increment, { maxAttempts: 50 }),
      ),
    );
    expect(new Set(results).size).toBe(50);
    expect(await value()).toBe(50);
  });

  it('lets 100 concurrent increments from two replicas succeed within ten attempts if each replica serialises its own', async () => {
    let retries = 0;
    const options = { serializeOn: 'hits', onRetry: () => (retries += 1) };
    const run = (on: DataSource): Promise<number> => inTransaction(on, 'REPEATABLE READ', increment, options);
    await Promise.all(Array.from({ length: 100 }, (_, index) => run(index % 2 === 0 ? dataSource : replica)));
    expect(await value()).toBe(100);
    expect(retries).toBeLessThan(200);
  });

  it('commits synchronously unless its first statement turns synchronous_commit off', async () => {
    // Turned on here, because a test server may run without waiting for its disk.
    const durable = await connectCounters(`${database.url}?options=-c%20synchronous_commit%3Don`);
    const setting = async (mayBeLostInCrash?: boolean): Promise<string | undefined> => {
      return inTransaction(durable, 'REPEATABLE READ', async (manager) => {
        if (mayBeLostInCrash) await manager.query("SELECT set_config('synchronous_commit', 'off', true)");
        await increment(manager);
        const [row] = await manager.query<{ shown: string }[]>(
          "SELECT current_setting('synchronous_commit') || ', ' || current_setting('transaction_isolation') AS shown",
        );
        return row?.shown;
      });
    };
    expect(await setting(true)).toBe('off, repeatable read');
    expect(await setting()).toBe('on, repeatable read');
    await durable.destroy();
    expect(await value()).toBe(2);
  });

  it('is ended by the server when it idles beyond its limit, without affecting other connections', async () => {
    const limitOf = (manager: EntityManager) =>
      manager.query<unknown[]>("SELECT current_setting('idle_in_transaction_session_timeout') AS shown");
    const standing = inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
      await manager.query("SELECT set_config('idle_in_transaction_session_timeout', '50', true)");
      expect(await limitOf(manager)).toEqual([{ shown: '50ms' }]);
      await increment(manager);
      await eventually(async () => expect(await openTransactions()).toBe(0));
      return increment(manager);
    });
    const openTransactions = async (): Promise<unknown> => {
      const [row] = await database.querySuperuser(
        "SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'",
      );
      return row?.['count'];
    };
    const error = await standing.catch((reason: unknown) => reason);
    expect(isConnectionError(error)).toBe(true);
    expect(await value()).toBe(0);
    const shown = await inTransaction(dataSource, 'READ COMMITTED', limitOf);
    expect(shown).not.toEqual([{ shown: '50ms' }]);
  });

  it('repeats a serializable transaction that fails at its commit', async () => {
    const attempts = await Promise.all(
      Array.from({ length: 8 }, () =>
        inTransaction(
          dataSource,
          'SERIALIZABLE',
          async (manager) => {
            const [row] = await manager.query<{ sum: number }[]>('SELECT count(*)::int AS sum FROM note');
            await manager.query('INSERT INTO note (text) VALUES ($1)', [`after ${row?.sum}`]);
            return row?.sum;
          },
          { maxAttempts: 50 },
        ),
      ),
    );
    expect([...attempts].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  it('gives up with ContentionError after the maximum number of attempts', async () => {
    const collide = async (manager: EntityManager): Promise<void> => {
      await manager.query('SELECT 1 FROM counter');
      await database.query("UPDATE counting.counter SET value = value + 1 WHERE name = 'hits'");
      await increment(manager);
    };
    const retried: number[] = [];
    const options = { maxAttempts: 3, onRetry: (_error: unknown, attempt: number) => retried.push(attempt) };
    await expect(inTransaction(dataSource, 'REPEATABLE READ', collide, options)).rejects.toThrow(
      ContentionError,
    );
    expect(retried).toEqual([1, 2]);
  });

  it('counts retries and transactions given up, and exports the pool', async () => {
    const metrics = new Metrics();
    const observed = await connectCounters(database.url, { poolSize: 7 });
    try {
      registerDatabaseMetrics(observed, 'counting', metrics);
      const collide = async (manager: EntityManager): Promise<void> => {
        await manager.query('SELECT 1 FROM counter');
        await database.query("UPDATE counting.counter SET value = value + 1 WHERE name = 'hits'");
        await increment(manager);
      };
      const attempt = inTransaction(observed, 'REPEATABLE READ', collide, { maxAttempts: 3 });
      await expect(attempt).rejects.toThrow(ContentionError);
      const text = await metrics.registry.metrics();
      expect(text).toContain('database_transaction_retries_total{database="counting"} 2');
      expect(text).toContain('database_transactions_exhausted_total{database="counting"} 1');
      expect(text).toContain('database_pool_connections{database="counting",state="idle"} 1');
      expect(text).toContain('database_pool_connections{database="counting",state="in_use"} 0');
      expect(text).toContain('database_pool_connections_max{database="counting"} 7');
      expect(text).toContain('database_pool_waiting{database="counting"} 0');
    } finally {
      await observed.destroy();
    }
  });

  it('gives up with ContentionError when it waits too long for its key', async () => {
    let finish = (): void => undefined;
    const held = new Promise<void>((resolve) => (finish = resolve));
    const first = inTransaction(dataSource, 'READ COMMITTED', () => held, { serializeOn: 'slow' });
    const second = inTransaction(dataSource, 'READ COMMITTED', increment, {
      serializeOn: 'slow',
      deadlineMs: -1,
    });
    finish();
    await first;
    await expect(second).rejects.toThrow(ContentionError);
  });

  it('rolls back and rethrows an error of the work at the first attempt', async () => {
    let runs = 0;
    const failing = async (manager: EntityManager): Promise<void> => {
      runs += 1;
      await increment(manager);
      throw new Error('no');
    };
    await expect(inTransaction(dataSource, 'REPEATABLE READ', failing)).rejects.toThrow('no');
    expect([runs, await value()]).toEqual([1, 0]);
  });

  it('nests as a savepoint', async () => {
    await inTransaction(dataSource, 'REPEATABLE READ', async (manager) => {
      await increment(manager);
      const inner = manager.transaction(async (nested) => {
        await increment(nested);
        throw new Error('only the inner part');
      });
      await expect(inner).rejects.toThrow('only the inner part');
    });
    expect(await value()).toBe(1);
  });

  it('runs at the requested isolation and leaves no transaction open', async () => {
    const levels = ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'] as const;
    for (const level of levels) {
      const rows = await inTransaction(dataSource, level, (manager) =>
        manager.query('SHOW transaction_isolation'),
      );
      expect(rows).toEqual([{ transaction_isolation: level.toLowerCase() }]);
    }
    const open =
      "SELECT count(*)::int AS open FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND datname = current_database()";
    expect(await database.querySuperuser(open)).toEqual([{ open: 0 }]);
  });

  it('names the constraint that a duplicate violates', async () => {
    const insert = inTransaction(dataSource, 'READ COMMITTED', (manager) =>
      manager.query("INSERT INTO counter VALUES ('hits', 1)"),
    );
    const error: unknown = await insert.catch((each: unknown) => each);
    expect([
      isUniqueViolation(error),
      isUniqueViolation(error, 'counter_pkey'),
      isUniqueViolation(error, 'other'),
    ]).toEqual([true, true, false]);
  });
});

describe('inTwoRoundTrips', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateCounters });
    dataSource = await connectCounters(database.url, { poolSize: 1 });
  });
  beforeEach(() => database.query("UPDATE counting.counter SET value = 0 WHERE name = 'hits'"));
  afterAll(async () => {
    const { pool } = PoolDriver.of(dataSource);
    expect({ waiting: pool.waitingCount, busy: pool.totalCount - pool.idleCount }).toEqual({
      waiting: 0,
      busy: 0,
    });
    await dataSource.destroy();
    await database.drop();
  });

  const statement = (text: string) => ({ text, values: [] });
  const LOCK = {
    name: 'lock-hits',
    text: `SELECT value, pg_current_xact_id()::text AS xid FROM counter WHERE name = 'hits' FOR UPDATE`,
  };
  const INCREMENT = statement(
    `UPDATE counter SET value = value + 1 WHERE name = 'hits' RETURNING value, pg_current_xact_id()::text AS xid`,
  );
  const WRITE = `WITH written AS (${INCREMENT.text})`;
  const value = async (): Promise<unknown> =>
    (await database.query("SELECT value FROM counting.counter WHERE name = 'hits'"))[0]?.value;
  const failed = (next: () => Query | null, first = LOCK): Promise<unknown> =>
    inTwoRoundTrips(dataSource, first, next).then(
      () => 'committed',
      (error: unknown) => error,
    );

  it('is one transaction, committed with its last statement', async () => {
    let found: unknown[] = [];
    const written = await inTwoRoundTrips<{ value: number; xid: string }, object>(
      dataSource,
      LOCK,
      (rows) => {
        found = rows;
        return INCREMENT;
      },
    );
    const [{ xid }] = found as [{ xid: string }];
    expect(found).toEqual([{ value: 0, xid }]);
    expect(written).toEqual([{ value: 1, xid }]);
    expect(await value()).toBe(1);
    expect(await inTwoRoundTrips(dataSource, LOCK, () => null)).toEqual([]);
  });

  it.each<[string, () => Query | null, object]>([
    [
      'PostgreSQL refuses a statement',
      () => statement(`${WRITE}, refused AS (SELECT 1 / (value - value) FROM written) SELECT * FROM refused`),
      { code: '22012' },
    ],
    [
      'the connection is lost',
      () => statement(`${WRITE} SELECT pg_terminate_backend(pg_backend_pid()) FROM written`),
      { code: '57P01' },
    ],
    [
      '`next` throws',
      () => {
        throw new TypeError('undecided');
      },
      { message: 'undecided' },
    ],
  ])('commits nothing and releases the connection when %s', async (_, next, error) => {
    expect(await failed(next)).toMatchObject(error);
    expect(await value()).toBe(0);
    await inTwoRoundTrips(dataSource, LOCK, () => INCREMENT);
    expect(await value()).toBe(1);
  });

  it('stops when the first statement is refused', async () => {
    const next = jest.fn(() => INCREMENT);
    expect(await failed(next, { name: 'refused', text: 'SELECT 1 / 0' })).toMatchObject({ code: '22012' });
    expect(next).not.toHaveBeenCalled();
  });

  it('is retried after a serialization failure or a deadlock', async () => {
    const refusals = [
      statement('DO $$ BEGIN RAISE serialization_failure; END $$'),
      statement('DO $$ BEGIN RAISE deadlock_detected; END $$'),
    ];
    await inTwoRoundTrips(dataSource, LOCK, () => refusals.shift() ?? INCREMENT);
    expect(refusals).toEqual([]);
    expect(await value()).toBe(1);
  });
});
