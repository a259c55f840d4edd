import { randomUUID } from 'node:crypto';
import { eventually, TcpProxy } from '@platform/testing';
import { SYSTEM_CLOCK, sleep } from '@platform/time';
import { DataSource } from 'typeorm';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const DAY_MS = 86_400_000;
/** Returns the date `offset` days from today. */
const day = (offset: number): string => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10);
const HOLIDAYS = { name: 'Holidays', excludedDates: [day(5)] };
/** Statements of a transaction whose response to COMMIT the proxy drops. */
const CREATION = ['INSERT INTO task.calendars', 'COMMIT'];
const REPLACEMENT = ['UPDATE task.calendars', 'COMMIT'];
const DELETION = ['DELETE FROM "task"."calendars"', 'COMMIT'];
const CHANGE = ['UPDATE "task"."schedules"', 'COMMIT'];

describe('the commit of a calendar change', () => {
  let service: TaskFixture;
  let database: TcpProxy;
  /** Runs once, during the delay before the next attempt. */
  let inTheWait: (() => Promise<unknown>) | null = null;

  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  const put = (id: string, body: object = HOLIDAYS, replica = 0) =>
    (service.apis[replica] ?? service.api).put(`/Calendars/${id}`).set(PARTNER).send(body);
  const remove = (id: string) => service.api.delete(`/Calendars/${id}`).set(PARTNER);
  const create = async (body: object = {}): Promise<string> => {
    const id = randomUUID();
    await put(id, { ...HOLIDAYS, excludedDates: [], ...body }).expect(200);
    return id;
  };
  const etagOf = async (path: string): Promise<string> =>
    (await service.api.get(path).set(PARTNER).expect(200)).headers['etag'] as string;
  const createSchedule = async (facilityId: number, more: object = {}): Promise<string> => {
    const body = { facilityId, name: 'Round', schedule: '0 9 * * *', ...more };
    const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    return (created.body as { scheduleId: string }).scheduleId;
  };
  const pending = async (scheduleId: string): Promise<string[]> => {
    const rows = await query<{ due: Date }>(
      `SELECT due_at AS due FROM task.instances WHERE schedule_id = $1 AND status = 'Pending'`,
      scheduleId,
    );
    return rows.map(({ due }) => due.toISOString().slice(0, 10));
  };
  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));
  const waitForLock = () =>
    eventually(async () => {
      const rows = await service.database.querySuperuser(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      );
      expect(rows).not.toEqual([]);
    });
  const noRollouts = () =>
    eventually(async () => expect(await query('SELECT 1 FROM task.calendar_rollouts')).toEqual([]), {
      // A rollout ends only after every transaction of the server that began before it has ended.
      timeoutMs: 60_000,
    });

  beforeAll(async () => {
    service = await startTaskService({
      replicas: 2,
      databaseUrl: async (url) => (database = await TcpProxy.start(url)).url,
      clock: {
        ...SYSTEM_CLOCK,
        sleep: async (durationMs, signal) => {
          const work = inTheWait;
          inTheWait = null;
          await work?.();
          await sleep(durationMs, signal);
        },
      },
    });
  });
  afterEach(async () => {
    await query('ROLLBACK');
    expect(database.dropsResponse).toBe(false);
  });
  afterAll(async () => {
    await service.close();
    await database.stop();
  });

  describe('that is delayed', () => {
    it('also reaches a schedule that was created and generated before it', async () => {
      const calendarId = await create();
      await noRollouts();
      // The change has locked the calendar and waits for the table of rollouts.
      await query('BEGIN');
      await query('LOCK TABLE task.calendar_rollouts IN SHARE ROW EXCLUSIVE MODE');
      const change = put(calendarId).then(({ status }) => status);
      await waitForLock();
      const scheduleId = await createSchedule(72_001, { calendarId });
      await generate(72_001);
      expect(await pending(scheduleId)).toContain(day(5));
      await query('COMMIT');
      expect(await change).toBe(200);
      await eventually(async () => expect(await pending(scheduleId)).not.toContain(day(5)), {
        timeoutMs: 60_000,
      });
    }, 180_000);

    it('also reaches a schedule whose own change began before it and commits after it', async () => {
      const calendarId = await create();
      const scheduleId = await createSchedule(72_002);
      const others = await createSchedule(72_003, { calendarId });
      for (const facilityId of [72_002, 72_003]) await generate(facilityId);
      await noRollouts();
      await query('BEGIN');
      await query(
        'UPDATE task.schedules SET calendar_id = $2, calendar_revision = 1 WHERE schedule_id = $1',
        scheduleId,
        calendarId,
      );
      await put(calendarId).expect(200);
      // The first pass has ended without seeing the schedule.
      await eventually(async () => expect(await pending(others)).not.toContain(day(5)), {
        timeoutMs: 60_000,
      });
      await query('COMMIT');
      await eventually(async () => expect(await pending(scheduleId)).not.toContain(day(5)), {
        timeoutMs: 60_000,
      });
      await noRollouts();
    }, 180_000);
  });

  describe('whose response is lost', () => {
    it('is recognised by the next attempt', async () => {
      const calendarId = randomUUID();
      database.dropResponse(...CREATION);
      const created = await put(calendarId).set('if-none-match', '*').expect(200);
      expect(await etagOf(`/Calendars/${calendarId}`)).toBe(created.headers['etag']);
      database.dropResponse(...REPLACEMENT);
      const replaced = await put(calendarId, { ...HOLIDAYS, name: 'Feasts' })
        .set('if-match', created.headers['etag'] as string)
        .expect(200);
      expect(await etagOf(`/Calendars/${calendarId}`)).toBe(replaced.headers['etag']);
      database.dropResponse(...DELETION);
      await remove(calendarId)
        .set('if-match', replaced.headers['etag'] as string)
        .expect(204);
      const another = await create();
      database.dropResponse(...DELETION);
      await remove(another).expect(204);
    });

    it('has an unknown outcome if another caller has changed the calendar since', async () => {
      const calendarId = await create();
      const etag = await etagOf(`/Calendars/${calendarId}`);
      inTheWait = () => put(calendarId, { ...HOLIDAYS, name: 'of others' }, 1).expect(200);
      database.dropResponse(...REPLACEMENT);
      const answer = await put(calendarId).set('if-match', etag).expect(503);
      expect(answer.body.type).toBe('urn:platform:problem:outcome-unknown');
      inTheWait = () => put(calendarId, { ...HOLIDAYS, name: 'of others' }, 1).expect(200);
      database.dropResponse(...DELETION);
      const deletion = await remove(calendarId)
        .set('if-match', await etagOf(`/Calendars/${calendarId}`))
        .expect(503);
      expect(deletion.body.type).toBe('urn:platform:problem:outcome-unknown');
    });

    it('has an unknown outcome if another caller has changed the schedule since', async () => {
      const scheduleId = await createSchedule(72_004);
      const path = `/Schedules/${scheduleId}`;
      inTheWait = () =>
        (service.apis[1] ?? service.api).patch(path).set(PARTNER).send({ name: 'of others' }).expect(200);
      const etag = await etagOf(path);
      database.dropResponse(...CHANGE);
      const answer = await service.api
        .patch(path)
        .set(PARTNER)
        .set('if-match', etag)
        .send({ name: 'mine' })
        .expect(503);
      expect(answer.body.type).toBe('urn:platform:problem:outcome-unknown');
      await service.api.patch(path).set(PARTNER).set('if-match', etag).send({ name: 'again' }).expect(412);
    });
  });
});
