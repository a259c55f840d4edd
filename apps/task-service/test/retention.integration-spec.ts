import { randomUUID } from 'node:crypto';
import type { QueryRunner } from 'typeorm';
import { postgresOptions } from '@platform/database';
import { createTestDatabase } from '@platform/testing';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { ENTITIES } from '../src/database-layout';
import {
  type FacilityStep,
  ReleasedInstancesRepository,
} from '../src/instances/released-instances.repository';
import { Trigger } from '../src/scheduler/trigger.entity';
import { TriggersRepository } from '../src/scheduler/triggers.repository';
import { loadTaskServiceConfig } from '../src/config';
import { FireRetentionJob, InstanceRetentionJob, RemovedScheduleRetentionJob } from '../src/retention.job';
import { FiresByMonth1800000003000 } from '../src/migrations/1800000003000-fires-by-month';
import { environment, migrate, migrationSettings, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('retention of', () => {
  let service: TaskFixture;

  beforeAll(async () => {
    service = await startTaskService({
      env: {
        FIRE_RETENTION_DAYS: '7',
        INSTANCE_RETENTION_DAYS: '100',
        REMOVED_SCHEDULE_RETENTION_DAYS: '10',
      },
    });
  });
  afterAll(() => service.close());

  describe('old instances', () => {
    /**
     * Creates a schedule with 1,200 instances per entry of `statuses`, which maps a status to the age of its
     * instances. Returns the schedule's id.
     */
    const addInstances = async (statuses: Readonly<Record<string, string>>): Promise<string> => {
      const schedule = { facilityId: 77, name: 'Inspect', schedule: '0 9 * * 1' };
      const { body } = await service.api.post('/Schedules').set(PARTNER).send(schedule).expect(201);
      const { scheduleId } = body as { scheduleId: string };
      for (const [status, age] of Object.entries(statuses))
        await service.database.query(
          `INSERT INTO task.${status === 'Released' ? 'released_instances' : 'instances'}
           (schedule_id, facility_id, name, due_at, status, completed_at)
         SELECT $1, 77, $2, now() - $3::interval - n * interval '1 minute', $4, CASE WHEN $4 = 'Completed' THEN now() END
         FROM generate_series(1, 1200) AS n`,
          [scheduleId, status, age, status === 'Released' ? 'Cancelled' : status.split(' ')[0]],
        );
      return scheduleId;
    };
    const left = (scheduleId: string) =>
      service.database.query(
        `SELECT name, count(*)::int AS count FROM task.instances WHERE schedule_id = $1 AND due_at < now() GROUP BY 1 ORDER BY 1`,
        [scheduleId],
      );

    it('are purged after the configured days if completed or cancelled, while pending and newer ones stay', async () => {
      const scheduleId = await addInstances({
        Completed: '101 days',
        Cancelled: '102 days',
        Released: '101 days',
        Pending: '103 days',
        'Completed recently': '98 days',
      });
      const job = service.app.get(InstanceRetentionJob);
      expect(await Promise.all([job.run(), job.run()]).then(([one, other]) => one + other)).toBe(3_600);
      expect(await left(scheduleId)).toEqual([
        { name: 'Completed recently', count: 1_200 },
        { name: 'Pending', count: 1_200 },
      ]);
      expect(await job.run()).toBe(0);
    });

    it('are kept longer than generation catches up, which would create them again', () => {
      const load = (days: string) =>
        loadTaskServiceConfig({
          ...environment('http://127.0.0.1:9'),
          DATABASE_URL: service.database.url,
          RABBITMQ_MAIN_URL: 'amqp://localhost',
          RABBITMQ_SCHEDULING_URL: 'amqp://localhost',
          GENERATION_CATCH_UP_DAYS: '90',
          INSTANCE_RETENTION_DAYS: days,
        });
      expect(() => load('90')).toThrow('INSTANCE_RETENTION_DAYS: must be 0 or more');
      expect([load('0'), load('91')].map((config) => config.INSTANCE_RETENTION_DAYS)).toEqual([0, 91]);
    });
  });

  describe('removed schedules', () => {
    const create = async (key = randomUUID()): Promise<string> => {
      const schedule = { facilityId: 78, name: 'Inspect', schedule: '0 9 * * 1' };
      const answer = service.api.post('/Schedules').set(PARTNER).set('idempotency-key', key).send(schedule);
      return ((await answer.expect(201)).body as { scheduleId: string }).scheduleId;
    };
    const remove = (id: string) => service.api.post(`/Schedules/${id}/commands/remove`).set(PARTNER);
    const removeBefore = async (id: string, age: string): Promise<void> => {
      await remove(id).expect(200);
      await service.database.query(
        'UPDATE task.schedules SET removed_at = removed_at - $2::interval WHERE schedule_id = $1',
        [id, age],
      );
    };
    const addInstance = (table: string, id: string, status: string) =>
      service.database.query(
        `INSERT INTO task.${table} (schedule_id, facility_id, name, due_at, status, completed_at)
       VALUES ($1, 78, 'Inspect', now() - interval '1 day', $2, CASE WHEN $2 = 'Completed' THEN now() END)`,
        [id, status],
      );
    const left = async (ids: Readonly<Record<string, string>>): Promise<string[]> => {
      const rows = await service.database.query<{ id: string }>(
        'SELECT schedule_id AS id FROM task.schedules',
      );
      const there = new Set(rows.map(({ id }) => id));
      return Object.keys(ids).filter((name) => there.has(ids[name] ?? ''));
    };

    it('are purged after the configured days if nothing refers to them, while all others stay', async () => {
      const job = service.app.get(RemovedScheduleRetentionJob);
      const key = randomUUID();
      const ids = {
        old: await create(key),
        young: await create(),
        active: await create(),
        paused: await create(),
        pending: await create(),
        completed: await create(),
        released: await create(),
        releasing: await create(),
        removedByTheOldRelease: await create(),
      };
      await addInstance('instances', ids.pending, 'Pending');
      await addInstance('instances', ids.completed, 'Completed');
      await addInstance('released_instances', ids.released, 'Cancelled');
      for (const name of ['old', 'pending', 'completed', 'released', 'releasing'] as const)
        await removeBefore(ids[name], '11 days');
      await removeBefore(ids.young, '9 days');
      await service.database.query(
        `INSERT INTO task.releases (schedule_id, cause, only_copies, changed_at, done_until, remaining)
       VALUES ($1, 'Removal', false, now(), now(), 1)`,
        [ids.releasing],
      );
      await service.api.post(`/Schedules/${ids.paused}/commands/pause`).set(PARTNER).expect(200);
      await service.database.query(`UPDATE task.schedules SET status = 'Removed' WHERE schedule_id = $1`, [
        ids.removedByTheOldRelease,
      ]);
      const purged = await Promise.all([job.run(), job.run()]);
      expect(purged[0] + purged[1]).toBe(1);
      expect(await left(ids)).toEqual(Object.keys(ids).filter((name) => name !== 'old'));
      const dated = 'SELECT 1 FROM task.schedules WHERE schedule_id = $1 AND removed_at IS NOT NULL';
      expect(await service.database.query(dated, [ids.removedByTheOldRelease])).toHaveLength(1);
      await service.api.get(`/Schedules/${ids.old}`).set(PARTNER).expect(404);
      await remove(ids.old).expect(404);
      expect(await create(key)).not.toBe(ids.old);
      // The rows that refer to them have a retention of their own.
      await service.database.query('DELETE FROM task.instances WHERE facility_id = 78');
      await service.database.query('DELETE FROM task.releases');
      expect(await job.run()).toBe(4);
      expect(await left(ids)).toEqual(['young', 'active', 'paused', 'removedByTheOldRelease']);
    });

    it('that stay are skipped page by page, and a locked one delays nothing', async () => {
      const job = service.app.get(RemovedScheduleRetentionJob);
      await service.database.query(
        `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
         created_by_persona, request_digest, status, removed_at)
       SELECT gen_random_uuid(), 79, 'Inspect', '0 9 * * 1', 'UTC', now(), 's', 1, '', 'Removed', now() - interval '20 days'
       FROM generate_series(1, 2500)`,
      );
      await service.database.query(
        `INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
       SELECT schedule_id, 79, 'Inspect', now() FROM task.schedules WHERE facility_id = 79 ORDER BY schedule_id LIMIT 1500`,
      );
      const holder = new Client({ connectionString: service.database.ownerUrl });
      await holder.connect();
      await holder.query('BEGIN');
      await holder.query(
        `SELECT 1 FROM task.schedules WHERE schedule_id = (SELECT max(schedule_id::text)::uuid FROM task.schedules WHERE facility_id = 79)
       FOR KEY SHARE`,
      );
      expect(await job.run()).toBe(999);
      await holder.query('ROLLBACK');
      await holder.end();
      expect(await job.run()).toBe(1);
      await service.database.query('DELETE FROM task.instances WHERE facility_id = 79');
      expect(await job.run()).toBe(1_500);
    });
  });

  describe('old fires', () => {
    const addFires = (facilityId: number, count: number, firedAt: string) =>
      service.database.query(
        `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
       SELECT $1, ${firedAt} - n * interval '1 minute', ${firedAt}, false, 0, gen_random_uuid() FROM generate_series(1, $2::int) AS n`,
        [facilityId, count],
      );

    it('are purged after the configured days, in batches, by the service’s own role, while newer ones stay', async () => {
      await addFires(600, 2_500, `now() - interval '8 days'`);
      await addFires(601, 3, `now() - interval '6 days'`);
      expect(await service.app.get(FireRetentionJob).run()).toBe(2_500);
      expect(await service.database.query('SELECT DISTINCT facility_id FROM task.fires')).toEqual([
        { facility_id: '601' },
      ]);
      expect(await service.app.get(FireRetentionJob).run()).toBe(0);
    });

    const MONTH = `SELECT tableoid::regclass::text AS month FROM task.fires WHERE facility_id = $1`;

    it('are stored in the partition of their month, which exists a month in advance', async () => {
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
      // Inserts a fire with the statement of the previous release.
      await service.database.query(
        `INSERT INTO task.trigger_fires (facility_id, scheduled_at, misfired, missed_count, message_id)
       VALUES (613, ${from} - interval '1 ms', false, 0, gen_random_uuid())`,
      );
      expect(await service.database.query(MONTH, [613])).toEqual([{ month: 'task.trigger_fires' }]);
      expect(await service.database.query(MONTH, [610])).toEqual([{ month: 'task.trigger_fires' }]);
      expect(await service.database.query(MONTH, [611])).toEqual([{ month: names!.first }]);
      expect(await service.database.query(MONTH, [612])).toEqual([{ month: names!.last }]);
    });

    it('are dropped with their month, except late ones and the last fire of a trigger', async () => {
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

    it('dated into the future by a wrong clock are moved in batches, and block neither partitions nor retention', async () => {
      const database = await createTestDatabase({ migrate });
      const ahead = (months: number) =>
        `date_trunc('month', now(), 'UTC') + interval '${String(months)} months 3 days'`;
      const insert = (facilityId: number, at: string, firedAt: string, count = 1) =>
        database.query(
          `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
         SELECT $1, ${at} + n * interval '1 second', ${firedAt}, false, 0, gen_random_uuid() FROM generate_series(1, $2::int) AS n`,
          [facilityId, count],
        );
      await insert(1, ahead(2), 'now()', 25_000);
      await insert(2, ahead(14), 'now()');
      await insert(3, `now() - interval '90 days'`, `now() - interval '90 days'`);
      const dataSource = await new DataSource(
        postgresOptions({ ...migrationSettings(database.url), entities: ENTITIES, poolSize: 2 }),
      ).initialize();
      const triggers = new TriggersRepository(dataSource.getRepository(Trigger));
      let steps = 0;
      // Simulates a process that is stopped repeatedly.
      for (let run = 0; run < 30; run += 1)
        await triggers.keepMonths(30, () => {
          steps += 1;
          return steps % 2 === 0;
        });
      const places = await database.query<{ facility: string; month: string; count: number }>(
        `SELECT facility_id AS facility, tableoid::regclass::text AS month, count(*)::int AS count FROM task.fires GROUP BY 1, 2 ORDER BY 1`,
      );
      const [names] = await database.query<{ month: string }>(
        `SELECT to_char(${ahead(2)}, '"task.fires_"YYYY_MM') AS month`,
      );
      expect(places).toEqual([
        { facility: '1', month: names!.month, count: 25_000 },
        { facility: '2', month: 'task.trigger_fires', count: 1 },
        { facility: '3', month: 'task.trigger_fires', count: 1 },
      ]);
      expect(
        await database.query(
          `SELECT conname FROM pg_constraint WHERE conrelid = 'task.trigger_fires'::regclass AND contype = 'c'`,
        ),
      ).toEqual([]);
      expect(await triggers.deleteOldFires(30, 10)).toBe(1);
      await dataSource.destroy();
      await database.drop();
    });

    it('are kept when the creation of a month was interrupted', async () => {
      const database = await createTestDatabase({ migrate });
      await database.query(
        `CREATE TABLE task.fires_2020_03 (LIKE task.fires INCLUDING DEFAULTS INCLUDING INDEXES)`,
      );
      await database.query(
        `INSERT INTO task.fires_2020_03 VALUES (1, '2020-03-05', '2020-03-05', false, 0, gen_random_uuid())`,
      );
      await database.query(
        `ALTER TABLE task.trigger_fires ADD CONSTRAINT fires_2020_03_elsewhere CHECK (scheduled_at < '2020-03-01' OR scheduled_at >= '2020-04-01') NOT VALID`,
      );
      // The previous release calls this function.
      await database.query('SELECT task.keep_fires(30)');
      expect(
        await database.query('SELECT facility_id, tableoid::regclass::text AS month FROM task.fires'),
      ).toEqual([{ facility_id: '1', month: 'task.trigger_fires' }]);
      const [count] = await database.query(
        `SELECT count(*)::int AS months FROM pg_inherits WHERE inhparent = 'task.fires'::regclass`,
      );
      expect(count).toEqual({ months: 4 });
      await database.drop();
    });

    it('are not scanned when the partition of a month is created', async () => {
      const database = await createTestDatabase({ migrate });
      const client = new Client(database.url);
      const notices: string[] = [];
      client.on('notice', ({ message }) => notices.push(message ?? ''));
      await client.connect();
      await client.query('SET client_min_messages = debug1');
      for (let step = 'again'; step !== 'done';) {
        const { rows } = await client.query<{ step: string }>(
          'SELECT task.keep_fires_step(30, 1000, true) AS step',
        );
        step = rows[0]!.step;
      }
      const implied =
        'updated partition constraint for default partition "trigger_fires" is implied by existing constraints';
      expect(notices.filter((notice) => notice.includes(implied))).toHaveLength(3);
      await client.end();
      await database.drop();
    });

    it('survive the migration and its reversal', async () => {
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

    it('stay while they are the last of their trigger, so that a long pause cannot repeat an occurrence', async () => {
      await service.database.query(
        `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
       VALUES (602, 'facility-602', 'g', 'j', '0 2 * * *', 'UTC', 'PAUSED', now() - interval '9 days')`,
      );
      await addFires(602, 1, `now() - interval '8 days'`);
      expect(await service.app.get(FireRetentionJob).run()).toBe(0);
    });
  });

  describe('facilities with too many released instances', () => {
    it('are found in consecutive steps with a bounded number of index entries', async () => {
      const facilities = [71, 72, 73, 74];
      for (const facilityId of facilities)
        await service.database.query(
          `INSERT INTO task.released_instances (schedule_id, facility_id, name, due_at, status, cancelled_at)
         SELECT gen_random_uuid(), $1, 'Released', now() + n * interval '1 minute', 'Cancelled', now()
         FROM generate_series(1, $2::int) AS n`,
          [facilityId, facilityId === 72 ? 500 : 1_200],
        );
      const released = service.app.get(ReleasedInstancesRepository);
      const walk = async (entries: number) => {
        const steps: (readonly number[])[] = [];
        for (let after: number | null = 70; after !== null;) {
          const { withMore, last }: FacilityStep = await released.facilitiesWithMore(1_000, after, entries);
          steps.push(withMore.filter((facilityId) => facilities.includes(facilityId)));
          after = last !== null && last < 74 ? last : null;
        }
        return steps;
      };
      expect(await walk(1)).toEqual([[71], [], [73], [74]]);
      expect(await walk(1_500)).toEqual([[71], [73, 74]]);
      expect(await walk(1_000_000)).toEqual([[71, 73, 74]]);
    });
  });
});
