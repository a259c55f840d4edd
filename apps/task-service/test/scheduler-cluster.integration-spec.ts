import type { TaskInstanceGenerationRequested } from '@platform/contracts';
import { postgresOptions } from '@platform/database';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { SYSTEM_CLOCK } from '@platform/time';
import { DataSource } from 'typeorm';
import { ENTITIES } from '../src/database-layout';
import { OutboundProxy } from '../src/outbound/outbound-proxy.service';
import { OutboxMessage } from '../src/outbound/outbox-message.entity';
import { OutboxRepository } from '../src/outbound/outbox.repository';
import { FiringService } from '../src/scheduler/firing.service';
import type { FiredBatch } from '../src/scheduler/firing.service';
import { Trigger } from '../src/scheduler/trigger.entity';
import { ACQUIRE_DUE, TriggersRepository } from '../src/scheduler/triggers.repository';
import { migrate, migrationSettings } from './task-fixture';

/**
 * Models replicas as the scheduler sees them: each has its own connections, and they share only the database.
 */
describe('schedulers on one trigger store', () => {
  let database: TestDatabase;
  const dataSources: DataSource[] = [];
  const replicas: FiringService[] = [];

  const addTriggers = (
    first: number,
    count: number,
    values: { schedule: string; dueAt: string; state?: string },
  ) =>
    database.query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
       SELECT id, 'facility-' || id, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule', $3, 'UTC', $4, ${values.dueAt}
       FROM generate_series($1::bigint, $1::bigint + $2::bigint - 1) AS id`,
      [first, count, values.schedule, values.state ?? 'WAITING'],
    );
  const fireAll = async (replica: FiringService): Promise<FiredBatch[]> => {
    const batches: FiredBatch[] = [];
    for (;;) {
      const batch = await replica.fireBatch();
      if (batch.acquired === 0) return batches;
      batches.push(batch);
    }
  };
  const messages = async () => {
    const rows = await database.query<{ message: TaskInstanceGenerationRequested }>(
      'SELECT message FROM task.outbox ORDER BY sequence',
    );
    return rows.map(({ message }) => message);
  };

  beforeAll(async () => {
    database = await createTestDatabase({ migrate });
    for (let index = 0; index < 3; index += 1) {
      const dataSource = await new DataSource(
        postgresOptions({ ...migrationSettings(database.url), entities: ENTITIES, poolSize: 2 }),
      ).initialize();
      dataSources.push(dataSource);
      // The scheduler only stores events, so the relay is not needed.
      const unused = { wake: () => undefined };
      const proxy = new OutboundProxy(
        dataSource,
        new OutboxRepository(dataSource.getRepository(OutboxMessage)),
        SYSTEM_CLOCK,
        unused,
      );
      const triggers = new TriggersRepository(dataSource.getRepository(Trigger));
      replicas.push(new FiringService(dataSource, triggers, proxy));
    }
  });
  afterEach(async () => {
    await database.query('TRUNCATE task.triggers, task.fires, task.outbox');
    for (const replica of replicas) replica.resetStart();
  });
  afterAll(async () => {
    await Promise.all(dataSources.map((dataSource) => dataSource.destroy()));
    await database.drop();
  });

  it('fire every due trigger exactly once, in batches of at most ten', async () => {
    await addTriggers(1, 500, { schedule: '0 2 * * *', dueAt: `now() - interval '1 minute'` });
    const batches = (await Promise.all(replicas.map(fireAll))).flat();
    expect(Math.max(...batches.map(({ acquired }) => acquired))).toBe(10);
    expect(batches.reduce((sum, { fired }) => sum + fired, 0)).toBe(500);
    const [fires] = await database.query<{ fires: string; facilities: string }>(
      'SELECT count(*) AS fires, count(DISTINCT facility_id) AS facilities FROM task.fires',
    );
    expect(fires).toEqual({ fires: '500', facilities: '500' });
    const facilities = (await messages()).map(({ facilityId }) => facilityId);
    expect(facilities).toHaveLength(500);
    expect(new Set(facilities).size).toBe(500);
    expect(await database.query('SELECT 1 FROM task.triggers WHERE next_fire_at <= now()')).toHaveLength(0);
  });

  it('send the time of the fire and its scheduled instant, and no misfire', async () => {
    await addTriggers(501, 1, { schedule: '* * * * *', dueAt: `date_trunc('minute', now())` });
    await replicas[0]?.fireBatch();
    const [message] = await messages();
    expect(message).toEqual({
      facilityId: 501,
      scheduledFireTimeUtc: expect.stringMatching(/:00\.000Z$/),
      fireTimeUtc: expect.any(String),
      misfired: false,
      missedCount: 0,
    });
  });

  it('fire every missed occurrence, oldest first, up to 5,400 s late', async () => {
    // The last multiple of ten minutes that is at least 80 minutes ago: due 4,800 s to 5,400 s ago, just
    // within the threshold.
    await addTriggers(1, 1, {
      schedule: '*/10 * * * *',
      dueAt: `date_bin('10 minutes', now() - interval '80 minutes', '2000-01-01')`,
    });
    const batches = (await Promise.all(replicas.slice(0, 2).map(fireAll))).flat();
    expect(batches.every(({ misfired }) => misfired === 0)).toBe(true);
    const instants = (await messages()).map(({ scheduledFireTimeUtc }) => Date.parse(scheduledFireTimeUtc));
    expect(instants.length).toBeGreaterThanOrEqual(8);
    expect(instants).toEqual([...instants].sort((left, right) => left - right));
    expect(new Set(instants.slice(1).map((instant, index) => instant - (instants[index] ?? 0)))).toEqual(
      new Set([600_000]),
    );
  });

  it('fire once beyond that, as a misfire of the latest missed occurrence', async () => {
    await addTriggers(1, 1, {
      schedule: '0 * * * *',
      dueAt: `date_trunc('hour', now()) - interval '5 hours'`,
    });
    await fireAll(replicas[0] as FiringService);
    const [message, ...others] = await messages();
    expect(others).toEqual([]);
    expect(message).toMatchObject({ misfired: true, missedCount: 6 });
    expect(Date.now() - Date.parse(message?.scheduledFireTimeUtc ?? '')).toBeLessThan(3_600_000 + 60_000);
  });

  it('skip fired triggers that an old snapshot keeps in the index', async () => {
    const runner = (dataSources[2] as DataSource).createQueryRunner();
    await runner.startTransaction('REPEATABLE READ');
    await runner.query('SELECT 1 FROM task.triggers');
    await addTriggers(1, 20_000, { schedule: '0 2 * * *', dueAt: `now() - interval '1 minute'` });
    await database.query(
      `UPDATE task.triggers SET next_fire_at = next_fire_at + interval '1 day' WHERE facility_id < 20000`,
    );
    const triggers = new TriggersRepository((dataSources[0] as DataSource).getRepository(Trigger));
    const { from } = await triggers.findNextDue((dataSources[0] as DataSource).manager);
    const pagesFrom = async (...position: unknown[]): Promise<number> => {
      const [row] = await database.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${ACQUIRE_DUE.text}`,
        position,
      );
      const plan = row!['QUERY PLAN'][0].Plan;
      return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!;
    };
    expect(await pagesFrom('-infinity', 0)).toBeGreaterThan(200);
    expect(await pagesFrom(from.at, from.facilityId)).toBeLessThan(30);
    await replicas[0]?.findNextDueDelayMs();
    expect(await replicas[0]?.fireBatch()).toMatchObject({ acquired: 1, fired: 1 });
    await runner.rollbackTransaction();
    await runner.release();
  });

  it('find a trigger that becomes overdue before their start position once that is reset', async () => {
    const [replica] = replicas as [FiringService];
    replica.resetStart();
    await replica.findNextDueDelayMs();
    await addTriggers(1, 1, { schedule: '0 2 * * *', dueAt: `now() - interval '1 hour'` });
    replica.resetStart();
    expect(await replica.findNextDueDelayMs()).toBeLessThan(0);
    expect(await replica.fireBatch()).toMatchObject({ fired: 1 });
  });

  it('do not fire paused triggers', async () => {
    await addTriggers(1, 3, { schedule: '* * * * *', dueAt: 'now()', state: 'PAUSED' });
    expect(await replicas[0]?.fireBatch()).toEqual({ acquired: 0, fired: 0, misfired: 0 });
  });

  it('mark a trigger that cannot be evaluated as failed, and fire the others of its batch', async () => {
    await addTriggers(1, 1, { schedule: 'nonsense', dueAt: `now() - interval '2 minutes'` });
    await addTriggers(2, 2, { schedule: '0 2 * * *', dueAt: `now() - interval '1 minute'` });
    expect(await replicas[0]?.fireBatch()).toEqual({ acquired: 3, fired: 2, misfired: 0 });
    const [failed] = await database.query('SELECT state, error FROM task.triggers WHERE facility_id = 1');
    expect(failed).toMatchObject({ state: 'ERROR', error: expect.stringContaining('CronExpressionError') });
  });

  it('do not fire an occurrence twice', async () => {
    await addTriggers(1, 1, { schedule: '0 2 * * *', dueAt: `date_trunc('minute', now())` });
    await replicas[0]?.fireBatch();
    await database.query(`UPDATE task.triggers SET next_fire_at = previous_fire_at`);
    expect(await replicas[1]?.fireBatch()).toEqual({ acquired: 1, fired: 0, misfired: 0 });
    expect(await messages()).toHaveLength(1);
  });

  it('skip triggers locked by a stopped replica, and fire them when its connection ends', async () => {
    await addTriggers(1, 15, { schedule: '0 2 * * *', dueAt: `now() - interval '1 minute'` });
    const runner = (dataSources[2] as DataSource).createQueryRunner();
    await runner.startTransaction();
    await runner.query(
      'SELECT 1 FROM task.triggers ORDER BY next_fire_at, facility_id LIMIT 10 FOR UPDATE SKIP LOCKED',
    );
    expect((await fireAll(replicas[0] as FiringService)).reduce((sum, { fired }) => sum + fired, 0)).toBe(5);
    await runner.rollbackTransaction();
    await runner.release();
    expect((await fireAll(replicas[1] as FiringService)).reduce((sum, { fired }) => sum + fired, 0)).toBe(10);
  });
});
