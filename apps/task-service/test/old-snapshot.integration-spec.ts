import { postgresOptions } from '@platform/database';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { ENTITIES, MIGRATIONS, SCHEMA } from '../src/database-layout';
import { messageTypesOf } from '../src/outbound/outbound-event';
import { OutboxFloors } from '../src/outbound/outbox-floors';
import { OutboxMessage } from '../src/outbound/outbox-message.entity';
import { OutboxRepository } from '../src/outbound/outbox.repository';
import type { BatchChoice } from '../src/outbound/outbox.repository';
import { migrate } from './task-fixture';

/** Dead rows in the outbox. docs/performance.md has the results for 1,000,000. */
const DEAD_ROWS = Number(process.env['TEST_DEAD_ROWS'] ?? 20_000);
const TYPES = messageTypesOf(['main', 'scheduling']);
const PARTITIONS = Array.from({ length: 16 }, (_, partition) => partition);
const settings = { schema: SCHEMA, applicationName: 'snapshot', entities: ENTITIES, migrations: MIGRATIONS };

describe('published events whose rows cannot be vacuumed because of an old snapshot', () => {
  let database: TestDatabase;
  let dataSource: DataSource;
  let holder: Client;
  let outbox: OutboxRepository;

  const store = (count: number) =>
    database.query(
      `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
       SELECT n % 16, n, gen_random_uuid(), $2, now(), '{}', json_build_object('name', repeat('x', 300))
       FROM generate_series(1, $1::int) AS n`,
      [count, 'ScheduleCreatedEvent'],
    );
  /**
   * Returns how many pages of the outbox and its indexes the work reads. Each connection flushes its
   * statistics only on request or at an arbitrary time, so both connections flush first.
   */
  const pagesOf = async (work: () => Promise<unknown>): Promise<number> => {
    const read = async (): Promise<number> => {
      for (const statement of ['SELECT pg_stat_force_next_flush()', 'SELECT 1']) {
        await dataSource.query(statement);
        await database.query(statement);
      }
      const [row] = await database.query<{ pages: string }>(
        `SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read AS pages
         FROM pg_statio_user_tables WHERE relid = 'task.outbox'::regclass`,
      );
      return Number(row?.pages);
    };
    const before = await read();
    const startedAt = performance.now();
    await work();
    const tookMs = performance.now() - startedAt;
    const pages = (await read()) - before;
    if (process.env['TEST_DEAD_ROWS'] !== undefined)
      process.stderr.write(`${pages.toLocaleString('en-US')} pages, ${tookMs.toFixed(1)} ms\n`);
    return pages;
  };
  const expectPages = async (work: () => Promise<unknown>, above: number, below: number): Promise<void> => {
    const pages = await pagesOf(work);
    expect(pages).toBeGreaterThan(above);
    expect(pages).toBeLessThan(below);
  };
  const pass = (choice: Partial<BatchChoice> = {}) =>
    dataSource.transaction((manager) =>
      outbox.lockBatches(manager, { partitions: [3], messageTypes: TYPES, limit: 50, ...choice }),
    );

  beforeAll(async () => {
    database = await createTestDatabase({ migrate });
    const options = postgresOptions({ ...settings, url: database.url, poolSize: 1, statementTimeoutMs: 0 });
    dataSource = await new DataSource(options).initialize();
    outbox = new OutboxRepository(dataSource.getRepository(OutboxMessage));
    // Automatic ANALYZE would change the plans at an arbitrary time. Each test runs it explicitly.
    await database.query('ALTER TABLE task.outbox SET (autovacuum_enabled = off)');
    holder = new Client({ connectionString: database.ownerUrl });
    await holder.connect();
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await holder.query('SELECT 1 FROM task.outbox');
    for (let part = 0; part < 10; part += 1) {
      await store(DEAD_ROWS / 10);
      await database.query('DELETE FROM task.outbox');
    }
  }, 300_000);
  afterEach(() => database.query('DELETE FROM task.outbox'));
  afterAll(async () => {
    await holder.end();
    await dataSource.destroy();
    await database.drop();
  });

  it.each([
    { statistics: 'that were never collected', before: '', behind: '' },
    { statistics: 'of an empty outbox', before: 'ANALYZE task.outbox', behind: '' },
    { statistics: 'of an outbox with events', before: '', behind: 'ANALYZE task.outbox' },
  ])(
    'do not slow down a pass, which starts after them, with statistics $statistics',
    async (analyze) => {
      await database.query(analyze.before);
      const floors = new OutboxFloors();
      let nowMs = 0;
      const readHeads = async (): Promise<void> => {
        const isFull = floors.isFullDue(nowMs);
        const { heads, last } = await outbox.readHeads({
          partitions: PARTITIONS,
          messageTypes: TYPES,
          floors: isFull ? [] : floors.of(PARTITIONS),
        });
        // Simulates the duration with many more dead rows.
        floors.note(heads, last, { isFull, startedAtMs: nowMs, endedAtMs: nowMs + 500 });
        nowMs += 16_000;
      };
      await expectPages(() => pass(), DEAD_ROWS / 100, Infinity);
      await expectPages(readHeads, DEAD_ROWS / 10, Infinity);
      await readHeads();
      await expectPages(() => pass({ floors: floors.of([3]) }), 0, 200);
      await store(1_600);
      await database.query(analyze.behind);
      let found = 0;
      const busy = async (): Promise<void> => {
        found = (await pass({ floors: floors.of([3]) })).get(3)?.events.length ?? 0;
      };
      await expectPages(busy, 0, 300);
      expect(found).toBe(50);
      const behind = { partitions: PARTITIONS, messageTypes: TYPES, floors: floors.of(PARTITIONS) };
      const count = async (): Promise<void> => {
        expect(await outbox.readBacklogAbove(behind)).toMatchObject({ waiting: 1_600, parked: 0 });
      };
      await expectPages(count, 0, 3_000);
      // About as often as metrics are scraped in one or two minutes. A statement that ran only once would not
      // be cached by the server.
      for (let reading = 0; reading < 20; reading += 1)
        expect((await outbox.readBacklogAbove(behind)).oldestAgeSeconds).toBeGreaterThan(0);
      expect(await outbox.readBacklog()).toMatchObject({ waiting: 1_600, parked: 0 });
      // Reads between two full ones are short, too.
      nowMs -= 16_000 - 1;
      expect(floors.isFullDue(nowMs)).toBe(false);
      await expectPages(readHeads, 0, 600);
      expect((await pass({ floors: floors.of([3]) })).get(3)?.events).toHaveLength(50);
    },
    120_000,
  );
});
