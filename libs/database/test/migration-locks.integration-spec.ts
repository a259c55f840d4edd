import { createTestDatabase, eventually } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { Client } from 'pg';
import type { DataSource, MigrationInterface, QueryRunner } from 'typeorm';
import { createIndexConcurrently, runMigrations } from '../src';
import { connectCounters, counterSettings } from './counters';

const [CreateCounters, AddNotes] = counterSettings('').migrations;
const BASE = [CreateCounters!, AddNotes!];

abstract class ForwardOnly {
  down(): Promise<void> {
    return Promise.reject(new Error('migrations only go forward'));
  }
}

class WidenCounters1700000000003 extends ForwardOnly implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE counting.note ADD COLUMN author text');
    await runner.query('ALTER TABLE counting.counter ADD COLUMN unit text');
  }
}

class IndexCounters1700000000004 extends ForwardOnly implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await createIndexConcurrently(runner, {
      schema: 'counting',
      table: 'counter',
      name: 'counter_by_value',
      definition: '(value)',
    });
  }
}

/** Reads and writes the table continuously, as requests do, and records the slowest statement. */
class Load {
  readonly failures: unknown[] = [];
  slowestMs = 0;
  count = 0;
  private isStopped = false;
  private readonly workers: Promise<void>[];

  constructor(private readonly dataSource: DataSource) {
    this.workers = Array.from({ length: 8 }, (_, index) => this.work(index % 2 === 0));
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.workers);
  }

  private async work(isReader: boolean): Promise<void> {
    const statement = isReader ? 'SELECT * FROM counter' : 'UPDATE counter SET value = value + 1';
    while (!this.isStopped) {
      const startedMs = performance.now();
      await this.dataSource.query(statement).catch((error: unknown) => this.failures.push(error));
      this.slowestMs = Math.max(this.slowestMs, performance.now() - startedMs);
      this.count += 1;
    }
  }
}

describe('migrations of a database in use', () => {
  let database: TestDatabase;
  /** An open transaction that has read the tables, as a dump has. */
  let dump: Client;
  let service: DataSource;
  let load: Load;
  const log: string[] = [];

  const migrate = (
    migrations: readonly (new () => MigrationInterface)[],
    lockLimitMs = 60_000,
  ): Promise<string[]> =>
    runMigrations(
      { ...counterSettings(database.ownerUrl), migrations: [...BASE, ...migrations] },
      { lockLimitMs },
    );
  const indexes = () =>
    database.query(
      `SELECT relname AS name, indisvalid AS valid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
       WHERE relname LIKE 'counter_by%'`,
    );

  beforeEach(async () => {
    database = await createTestDatabase({ migrate: (url) => runMigrations(counterSettings(url)) });
    service = await connectCounters(database.ownerUrl, { poolSize: 10 });
    load = new Load(service);
    dump = new Client({ connectionString: database.ownerUrl });
    dump.on('error', () => undefined);
    await dump.connect();
    await dump.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await dump.query('SELECT * FROM counting.counter');
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => {
      log.push(String(text));
      return true;
    });
  });

  afterEach(async () => {
    jest.restoreAllMocks();
    await dump.end();
    await load.stop();
    await service.destroy();
    await database.drop();
  });

  it('wait for a lock 1 s at a time, so that requests continue, and log the wait', async () => {
    const migrated = migrate([WidenCounters1700000000003]);
    await eventually(() =>
      expect(log.join('')).toMatch(/WidenCounters\d+: another transaction holds a lock.*attempt 3/),
    );
    // The locks that an attempt acquired are released before the next attempt.
    await dump.query('COMMIT');
    expect(await migrated).toEqual(['WidenCounters1700000000003']);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.slowestMs).toBeLessThan(2_500);
    expect(await database.query('SELECT unit FROM counting.counter')).toHaveLength(1);
  }, 60_000);

  it('fail with advice when the lock is not granted in time, and can be run again', async () => {
    await expect(migrate([WidenCounters1700000000003], 2_000)).rejects.toMatchObject({
      name: 'CommandError',
      message: expect.stringMatching(
        /^WidenCounters\d+ did not get a lock within 2 s, because another transaction \(a dump/,
      ),
    });
    await dump.query('COMMIT');
    expect(await migrate([WidenCounters1700000000003])).toEqual(['WidenCounters1700000000003']);
  }, 60_000);

  it('build indexes while others read and write', async () => {
    const migrated = migrate([IndexCounters1700000000004]);
    await eventually(async () => expect(await indexes()).toHaveLength(1));
    await dump.query('COMMIT');
    await migrated;
    await load.stop();
    expect(await indexes()).toEqual([{ name: 'counter_by_value', valid: true }]);
    expect(load.failures).toEqual([]);
    expect(load.slowestMs).toBeLessThan(1_500);
  }, 60_000);

  it('rebuild an invalid index that a killed run left behind', async () => {
    const killed = migrate([IndexCounters1700000000004]).catch((error: unknown) => error);
    await eventually(async () =>
      expect(await indexes()).toEqual([{ name: 'counter_by_value', valid: false }]),
    );
    await database.querySuperuser(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE query LIKE 'CREATE INDEX CONCURRENTLY%' AND datname = current_database()`,
    );
    expect(await killed).toBeInstanceOf(Error);
    expect(await indexes()).toEqual([{ name: 'counter_by_value', valid: false }]);
    await dump.query('COMMIT');
    expect(await migrate([IndexCounters1700000000004])).toEqual(['IndexCounters1700000000004']);
    expect(await indexes()).toEqual([{ name: 'counter_by_value', valid: true }]);
  }, 60_000);

  it('exclude each other even while one builds an index, which waits for every snapshot', async () => {
    await dump.query('COMMIT');
    const both = await Promise.all([1, 2, 3].map(() => migrate([IndexCounters1700000000004], 20_000)));
    expect(both.filter((names) => names.length > 0)).toEqual([['IndexCounters1700000000004']]);
  }, 60_000);
});
