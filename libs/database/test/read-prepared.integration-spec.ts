import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { DataSource } from 'typeorm';
import { PoolDriver, isConnectionError, readPrepared, readPreparedArrays } from '../src';
import { connectCounters, migrateCounters } from './counters';

const LOOK_UP = { name: 'look-up', text: 'SELECT pg_backend_pid() AS pid, $1::text AS asked' };
const DIVIDE = { name: 'divide', text: 'SELECT 1 / $1::integer AS quotient' };
const DIE = { name: 'die', text: 'SELECT pg_terminate_backend(pg_backend_pid()), $1::text' };

describe('readPrepared', () => {
  let database: TestDatabase;
  let dataSource: DataSource;

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateCounters });
    dataSource = await connectCounters(database.url, { poolSize: 5 });
  });

  afterAll(async () => {
    await dataSource.destroy();
    await database.drop();
  });

  const lookUp = (asked: string) =>
    readPrepared<{ pid: number; asked: string }>(dataSource, LOOK_UP, [asked]);

  it('runs the look-ups of one turn on one connection, and returns each its own rows', async () => {
    const rows = (await Promise.all(['a', 'b', 'c'].map(lookUp))).flat();
    expect(rows.map(({ asked }) => asked)).toEqual(['a', 'b', 'c']);
    expect(new Set(rows.map(({ pid }) => pid)).size).toBe(1);
    expect(await readPreparedArrays(dataSource, LOOK_UP, ['d'])).toEqual([[rows[0]!.pid, 'd']]);
  });

  it('fails only the statement that PostgreSQL refuses, and keeps the connection', async () => {
    const [{ pid } = { pid: 0 }] = await lookUp('before');
    const [one, refused, two] = await Promise.allSettled([
      lookUp('one'),
      readPrepared(dataSource, DIVIDE, [0]),
      lookUp('two'),
    ]);
    expect([one, two]).toMatchObject([
      { value: [{ pid, asked: 'one' }] },
      { value: [{ pid, asked: 'two' }] },
    ]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: '22012' } });
    expect(await lookUp('after')).toEqual([{ pid, asked: 'after' }]);
  });

  it('fails every look-up on a lost connection, and opens another connection', async () => {
    const asked = await Promise.allSettled([readPrepared(dataSource, DIE, ['x']), lookUp('behind')]);
    const reasons = asked.map((each) => (each.status === 'rejected' ? each.reason : each.value) as unknown);
    expect(reasons.map(isConnectionError)).toEqual([true, true]);
    expect(await lookUp('again')).toMatchObject([{ asked: 'again' }]);
  });

  it('returns every connection to the pool', async () => {
    await Promise.allSettled([lookUp('x'), readPrepared(dataSource, DIVIDE, [0])]);
    const { pool } = PoolDriver.of(dataSource);
    expect({ waiting: pool.waitingCount, busy: pool.totalCount - pool.idleCount }).toEqual({
      waiting: 0,
      busy: 0,
    });
  });

  it('fails with a connection error if there is no connection', async () => {
    const lost = await connectCounters(database.url, { poolSize: 1 });
    await lost.destroy();
    await expect(readPrepared(lost, LOOK_UP, ['x']).catch(isConnectionError)).resolves.toBe(true);
  });
});
