import { randomUUID } from 'node:crypto';
import { eventually, testSize } from '@platform/testing';
import { CalendarRolloutJob } from '../src/calendars/calendar-rollout.job';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const FACILITIES = testSize('TEST_CALENDAR_FACILITIES', { quick: 20_000, full: 100_000 });

describe('a calendar that many facilities use', () => {
  let service: TaskFixture;
  let calendarId: string;
  const put = (excludedDates: string[]) =>
    service.api.put(`/Calendars/${calendarId}`).set(PARTNER).send({ name: 'Holidays', excludedDates });
  const requested = async (): Promise<number> => {
    const rows = await service.database.query<{ count: number }>(
      `SELECT count(DISTINCT facility_id)::int AS count FROM task.outbox WHERE message_type = 'ITaskInstanceGenerationRequested'`,
    );
    return rows[0]?.count ?? 0;
  };
  const rollouts = () => service.database.query('SELECT 1 FROM task.calendar_rollouts');

  const noRollouts = () =>
    eventually(async () => expect(await rollouts()).toEqual([]), {
      // A rollout ends only after every transaction of the server that began before it has ended.
      timeoutMs: 60_000,
      intervalMs: 500,
    });
  const anotherCalendar = async (): Promise<string> => {
    const id = randomUUID();
    const body = { name: 'Holidays', excludedDates: [] };
    await service.api.put(`/Calendars/${id}`).set(PARTNER).send(body).expect(200);
    return id;
  };

  beforeAll(async () => {
    service = await startTaskService({ replicas: 2 });
    calendarId = randomUUID();
    await put([]).expect(200);
    // Pauses the message type, so that the requests stay in the outbox and can be counted.
    await service.database.query(
      `INSERT INTO task.outbox_pauses (message_type, reason, last_error, next_probe_at)
       VALUES ('ITaskInstanceGenerationRequested', 'unconfirmed', 'test', now() + interval '5 minutes')`,
    );
    await service.database.query(
      `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
         created_by_persona, request_digest, calendar_id, calendar_revision)
       SELECT gen_random_uuid(), n, 'Round', '0 9 * * *', 'UTC', now(), 's', 1, '', $1, 1 FROM generate_series(1, $2::int) AS n`,
      [calendarId, FACILITIES],
    );
    await service.database.query(`
      CREATE FUNCTION task.refuse_large() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM set_config('test.stored', (coalesce(nullif(current_setting('test.stored', true), ''), '0')::int
          + (SELECT count(*) FROM stored))::text, true);
        IF current_setting('test.stored')::int > 1000 THEN RAISE 'too many events in one transaction'; END IF;
        RETURN NULL; END $$`);
    await service.database.query(`
      CREATE TRIGGER refuse_large AFTER INSERT ON task.outbox REFERENCING NEW TABLE AS stored
        FOR EACH STATEMENT EXECUTE FUNCTION task.refuse_large()`);
  }, 120_000);
  afterAll(() => service.close());

  it('requests generation for all of them, in small transactions, on either replica', async () => {
    const startedAt = performance.now();
    await put(['2030-12-25']).expect(200);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    await eventually(
      async () => {
        expect(await rollouts()).toEqual([]);
        expect(await requested()).toBe(FACILITIES);
      },
      { timeoutMs: 100_000, intervalMs: 500 },
    );
  }, 120_000);

  it('requests no generation for facilities whose schedules have all ended', async () => {
    const sharedCalendar = await anotherCalendar();
    await service.database.query(
      `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
         created_by_persona, request_digest, calendar_id, calendar_revision, end_date, ended_at)
       VALUES (gen_random_uuid(), 200001, 'Round', '0 9 * * *', 'UTC', now(), 's', 1, '', $1, 1, NULL, NULL),
         (gen_random_uuid(), 200002, 'Round', '0 9 * * *', 'UTC', now(), 's', 1, '', $1, 1, '2020-01-01', now())`,
      [sharedCalendar],
    );
    const body = { name: 'Holidays', excludedDates: ['2030-12-24'] };
    await service.api.put(`/Calendars/${sharedCalendar}`).set(PARTNER).send(body).expect(200);
    await noRollouts();
    const requestedFacilities = await service.database.query(
      'SELECT DISTINCT facility_id::int AS id FROM task.outbox WHERE facility_id > 200000',
    );
    expect(requestedFacilities).toEqual([{ id: 200_001 }]);
  }, 90_000);

  it('finishes its rollout after a restore from a server with much higher transaction ids', async () => {
    await service.database.query(
      `INSERT INTO task.calendar_rollouts (calendar_id, after_facility_id, changed_at, is_last_pass, next_transaction_id)
       VALUES ($1, $2, now(), true, 4e15), ($3, 0, now(), true, 4e15)`,
      [calendarId, FACILITIES, await anotherCalendar()],
    );
    await noRollouts();
  }, 90_000);

  it('restarts its rollout with the next change, and loses it when it is deleted', async () => {
    await service.database.query('TRUNCATE task.outbox');
    await service.database.query('UPDATE task.schedules SET calendar_revision = 2 WHERE facility_id > 2500');
    await put(['2030-12-26']).expect(200);
    await put([]).expect(200);
    for (const app of service.apps) await app.get(CalendarRolloutJob).run();
    await eventually(
      async () => {
        expect(await rollouts()).toEqual([]);
        expect(await requested()).toBe(FACILITIES);
      },
      { timeoutMs: 100_000, intervalMs: 500 },
    );
    await service.database.query('UPDATE task.schedules SET calendar_id = NULL');
    await service.database.query(
      `INSERT INTO task.calendar_rollouts (calendar_id, after_facility_id, changed_at) VALUES ($1, 0, now())`,
      [calendarId],
    );
    await service.api.delete(`/Calendars/${calendarId}`).set(PARTNER).expect(204);
    expect(await rollouts()).toEqual([]);
  }, 120_000);
});
