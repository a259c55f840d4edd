import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { DataSource, EntityManager } from 'typeorm';
import { inTransaction, isUniqueViolation, listParameter, queryPrepared } from '../src';
import { connectCounters, migrateCounters } from './counters';

const ADD = { name: 'add', text: 'INSERT INTO counter (name, value) VALUES ($1, $2) RETURNING value' };
const READ = { name: 'read', text: 'SELECT value FROM counter WHERE name = $1' };
const PLANS = {
  name: 'plans',
  text: `SELECT custom_plans::int AS custom, generic_plans::int AS generic FROM pg_prepared_statements WHERE name = $1`,
};
const PREPARED = { name: 'prepared', text: 'SELECT name FROM pg_prepared_statements ORDER BY name' };

describe('queryPrepared', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateCounters });
    dataSource = await connectCounters(database.url, { poolSize: 1 });
  });

  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const find = (name: string): Promise<unknown[]> => queryPrepared(dataSource, READ, [name]);

  it('prepares a statement once per connection', async () => {
    await find('hits');
    expect(await find('hits')).toEqual([{ value: 0 }]);
    expect(await queryPrepared(dataSource, PREPARED, [])).toEqual(
      expect.arrayContaining([{ name: 'read' }, { name: 'prepared' }]),
    );
  });

  it.each([
    ['unnest', `SELECT value FROM unnest(${listParameter(1, 'text')}) AS n JOIN counter ON name = n`],
    ['= ANY', `SELECT value FROM counter WHERE name = ANY (${listParameter(1, 'text')})`],
  ])('uses a cached plan for a statement over a short list (%s)', async (name, text) => {
    for (let run = 1; run <= 7; run += 1)
      expect(await queryPrepared(dataSource, { name, text }, [['hits']])).toEqual([{ value: 0 }]);
    // PostgreSQL plans the first five executions for their parameters, to estimate the cost.
    expect(await queryPrepared(dataSource, PLANS, [name])).toEqual([{ custom: 5, generic: 2 }]);
  });

  it('is part of the transaction of a given manager', async () => {
    await inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
      expect(await queryPrepared(manager, ADD, ['kept', 7])).toEqual([{ value: 7 }]);
      expect(await queryPrepared(manager, READ, ['kept'])).toEqual([{ value: 7 }]);
      const [row] = await database.query("SELECT count(*)::int FROM counting.counter WHERE name = 'kept'");
      expect(row).toEqual({ count: 0 });
    });
    expect(await find('kept')).toEqual([{ value: 7 }]);
  });

  it('is rolled back with its transaction', async () => {
    const failing = inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
      await queryPrepared(manager, ADD, ['lost', 1]);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await find('lost')).toEqual([]);
  });

  it('fails with an error that names the violated constraint', async () => {
    const again = inTransaction(dataSource, 'READ COMMITTED', (manager) =>
      queryPrepared(manager, ADD, ['hits', 1]),
    );
    const error = await again.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(isUniqueViolation(error, 'counter_pkey')).toBe(true);
  });

  it('refuses a manager whose transaction is over, because its connection may be in use elsewhere', async () => {
    let kept: EntityManager | undefined;
    await inTransaction(dataSource, 'READ COMMITTED', (manager) => {
      kept = manager;
      return Promise.resolve();
    });
    await expect(queryPrepared(kept as EntityManager, READ, ['hits'])).rejects.toThrow(/released/);
  });
});
