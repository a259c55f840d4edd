import type { QueryRunner } from 'typeorm';
import { createTestDatabase } from '@platform/testing';
import { FiresByMonth1800000003000 } from '../src/migrations/1800000003000-fires-by-month';
import { FireRetentionJob } from '../src/scheduler/fire-retention.job';
import { migrate, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('old fires', () => {
  let service: TaskFixture;

  beforeAll(async () => {
    service = await startTaskService({ env: { FIRE_RETENTION_DAYS: '7' } });
  });
  afterAll(() => service.close());

  const addFires = (facilityId: number, count: number, firedAt: string) =>
    service.database.query(
      `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
       SELECT $1, ${firedAt} - n * interval '1 minute', ${firedAt}, false, 0, gen_random_uuid() FROM generate_series(1, $2::int) AS n`,
      [facilityId, count],
    );

  it('are forgotten after the configured days, in batches, by the service’s own role; younger ones stay', async () => {
    await addFires(600, 2_500, `now() - interval '8 days'`);
    await addFires(601, 3, `now() - interval '6 days'`);
    expect(await service.app.get(FireRetentionJob).run()).toBe(2_500);
    expect(await service.database.query('SELECT DISTINCT facility_id FROM task.fires')).toEqual([
      { facility_id: '601' },
    ]);
    expect(await service.app.get(FireRetentionJob).run()).toBe(0);
  });

  const MONTH = `SELECT tableoid::regclass::text AS month FROM task.fires WHERE facility_id = $1`;

  it('go to the table of their month, which is there a month before it is needed', async () => {
    await service.app.get(FireRetentionJob).run();
    const from = `date_trunc('month', now(), 'UTC') + interval '2 months'`;
    for (const [facilityId, at] of [
      [610, `${from} - interval '1 ms'`],
      [611, from],
      [612, `${from} + interval '3 months' - interval '1 ms'`],
    ] as const)
      await service.database.query(
        `INSERT INTO task.fires (facility_id, scheduled_at, misfired, missed_count, message_id)
         VALUES ($1, ${at}, false, 0, gen_random_uuid())`,
        [facilityId],
      );
    const [names] = await service.database.query<{ first: string; last: string }>(
      `SELECT to_char(${from}, '"task.fires_"YYYY_MM') AS first,
         to_char(${from} + interval '2 months', '"task.fires_"YYYY_MM') AS last`,
    );
    // As the previous release writes.
    await service.database.query(
      `INSERT INTO task.trigger_fires (facility_id, scheduled_at, misfired, missed_count, message_id)
       VALUES (613, ${from} - interval '1 ms', false, 0, gen_random_uuid())`,
    );
    expect(await service.database.query(MONTH, [613])).toEqual([{ month: 'task.trigger_fires' }]);
    expect(await service.database.query(MONTH, [610])).toEqual([{ month: 'task.trigger_fires' }]);
    expect(await service.database.query(MONTH, [611])).toEqual([{ month: names!.first }]);
    expect(await service.database.query(MONTH, [612])).toEqual([{ month: names!.last }]);
  });

  it('go with their month, but for late ones and what a trigger stands on, which are still known', async () => {
    await service.app.get(FireRetentionJob).run();
    for (const month of ['2020_01', '2020_02'])
      await service.database.query(`CREATE TABLE task.fires_${month} PARTITION OF task.fires
        FOR VALUES FROM ('${month.replace('_', '-')}-01T00:00Z') TO ('2020-0${Number(month.at(-1)) + 1}-01T00:00Z')`);
    await service.database.query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
       VALUES (623, 'facility-623', 'g', 'j', '0 2 * * *', 'UTC', 'PAUSED', '2020-01-31T02:00Z')`,
    );
    const fire = (facilityId: number, at: string, firedAt = `'${at}'`) =>
      service.database.query(
        `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
         VALUES ($1, $2, ${firedAt}, false, 0, gen_random_uuid()) ON CONFLICT DO NOTHING RETURNING 1`,
        [facilityId, at],
      );
    await fire(621, '2020-01-31T23:59:59.999Z');
    await fire(622, '2020-02-01T00:00Z', 'now()');
    await fire(623, '2020-01-30T02:00Z');
    await fire(623, '2020-01-31T02:00Z');
    await service.app.get(FireRetentionJob).run();
    const left = await service.database.query(
      `SELECT facility_id, scheduled_at, tableoid::regclass::text AS month FROM task.fires
       WHERE scheduled_at < '2021-01-01' AND facility_id > 620 ORDER BY 1`,
    );
    expect(left).toEqual([
      { facility_id: '622', scheduled_at: new Date('2020-02-01T00:00Z'), month: 'task.trigger_fires' },
      { facility_id: '623', scheduled_at: new Date('2020-01-31T02:00Z'), month: 'task.trigger_fires' },
    ]);
    expect(await fire(623, '2020-01-31T02:00Z')).toEqual([]);
    expect(
      await service.database.query(`SELECT relname FROM pg_class WHERE relname LIKE 'fires\_2020%'`),
    ).toEqual([]);
  });

  it('survive the migration, and the way back', async () => {
    const database = await createTestDatabase({ migrate });
    const runner = { query: (sql: string) => database.query(sql) } as unknown as QueryRunner;
    const migration = new FiresByMonth1800000003000();
    const fires = (table: string) => database.query(`SELECT facility_id FROM task.${table} ORDER BY 1`);
    const both = [{ facility_id: '1' }, { facility_id: '2' }];
    await database.query('SELECT task.keep_fires(30)');
    await database.query(
      `INSERT INTO task.fires (facility_id, scheduled_at, misfired, missed_count, message_id)
       SELECT n, now() + (n - 1) * interval '3 months', false, 0, gen_random_uuid() FROM generate_series(1, 2) AS n`,
    );
    await migration.down(runner);
    expect(await fires('trigger_fires')).toEqual(both);
    await migration.up(runner);
    expect(await fires('fires')).toEqual(both);
    await database.drop();
  });

  it('stay while their trigger stands on them, so that a long pause cannot repeat an occurrence', async () => {
    await service.database.query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
       VALUES (602, 'facility-602', 'g', 'j', '0 2 * * *', 'UTC', 'PAUSED', now() - interval '9 days')`,
    );
    await addFires(602, 1, `now() - interval '8 days'`);
    expect(await service.app.get(FireRetentionJob).run()).toBe(0);
  });
});
