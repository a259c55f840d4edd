import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { DataSource } from 'typeorm';
import { PoolDriver, isConnectionError, readPrepared, readPreparedArrays } from '../src';
import { connectCounters, migrateCounters } from './counters';

const WHO = { name: 'who', text: 'SELECT pg_backend_pid() AS pid, $1::text AS asked' };
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

  const who = (asked: string) => readPrepared<{ pid: number; asked: string }>(dataSource, WHO, [asked]);

  it('sends what is asked in one turn over one connection, and gives each its own response', async () => {
    const answers = (await Promise.all(['a', 'b', 'c'].map(who))).flat();
    expect(answers.map(({ asked }) => asked)).toEqual(['a', 'b', 'c']);
    expect(new Set(answers.map(({ pid }) => pid)).size).toBe(1);
    expect(await readPreparedArrays(dataSource, WHO, ['d'])).toEqual([[answers[0]!.pid, 'd']]);
  });

  it('fails only the statement that PostgreSQL refuses, and keeps the connection', async () => {
    const [{ pid } = { pid: 0 }] = await who('before');
    const [one, refused, two] = await Promise.allSettled([
      who('one'),
      readPrepared(dataSource, DIVIDE, [0]),
      who('two'),
    ]);
    expect([one, two]).toMatchObject([
      { value: [{ pid, asked: 'one' }] },
      { value: [{ pid, asked: 'two' }] },
    ]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: '22012' } });
    expect(await who('after')).toEqual([{ pid, asked: 'after' }]);
  });

  it('fails all behind a lost connection, and opens another', async () => {
    const asked = await Promise.allSettled([readPrepared(dataSource, DIE, ['x']), who('behind')]);
    const reasons = asked.map((each) => (each.status === 'rejected' ? each.reason : each.value) as unknown);
    expect(reasons.map(isConnectionError)).toEqual([true, true]);
    expect(await who('again')).toMatchObject([{ asked: 'again' }]);
  });

  it('returns every connection', async () => {
    await Promise.allSettled([who('x'), readPrepared(dataSource, DIVIDE, [0])]);
    const { pool } = PoolDriver.of(dataSource);
    expect({ waiting: pool.waitingCount, busy: pool.totalCount - pool.idleCount }).toEqual({
      waiting: 0,
      busy: 0,
    });
  });

  it('fails like a statement when there is no connection', async () => {
    const lost = await connectCounters(database.url, { poolSize: 1 });
    await lost.destroy();
    await expect(readPrepared(lost, WHO, ['x']).catch(isConnectionError)).resolves.toBe(true);
  });
});
