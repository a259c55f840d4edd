import { randomUUID } from 'node:crypto';
import { eventually, testSize } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** More removed schedules than one request processes. */
const REMOVED = testSize('TEST_REMOVED_SCHEDULES', { quick: 60_000, full: 100_000 });

describe('a calendar that many removed schedules refer to', () => {
  let service: TaskFixture;
  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  const post = (facilityId: number, more: object = {}) =>
    service.api
      .post('/Schedules')
      .set(PARTNER)
      .send({ facilityId, name: 'Round', schedule: '0 9 * * *', ...more });
  const create = async (): Promise<string> => {
    const calendarId = randomUUID();
    const request = service.api.put(`/Calendars/${calendarId}`).set(PARTNER);
    await request.send({ name: 'Holidays', excludedDates: [] }).expect(200);
    return calendarId;
  };
  const remove = (calendarId: string) => service.api.delete(`/Calendars/${calendarId}`).set(PARTNER);
  const addRemoved = (calendarId: string, count: number) =>
    query(
      `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
         created_by_persona, request_digest, calendar_id, status, removed_at)
       SELECT gen_random_uuid(), 1 + n % 100, 'Round', '0 9 * * *', 'UTC', now(), 's', 1, '', $1, 'Removed', now()
       FROM generate_series(1, $2::int) AS n`,
      calendarId,
      count,
    );

  const waitForLock = () =>
    eventually(async () => {
      const rows = await service.database.querySuperuser(
        `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
      );
      expect(rows).not.toEqual([]);
    });

  beforeAll(async () => {
    service = await startTaskService();
    // Makes the database refuse transactions that change more than 5,000 schedules.
    await query(`
      CREATE FUNCTION task.refuse_large() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM set_config('test.changed', (coalesce(nullif(current_setting('test.changed', true), ''), '0')::int
          + (SELECT count(*) FROM changed))::text, true);
        IF current_setting('test.changed')::int > 5000 THEN RAISE 'too many schedules in one transaction'; END IF;
        RETURN NULL; END $$`);
    await query(`
      CREATE TRIGGER refuse_large AFTER UPDATE ON task.schedules REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION task.refuse_large()`);
  }, 60_000);
  afterEach(() => query('ROLLBACK'));
  afterAll(() => service.close());

  it('is deleted in transactions that change at most 5,000 schedules each', async () => {
    const calendarId = await create();
    await addRemoved(calendarId, REMOVED);
    // A request stops after a few seconds, and the next one continues.
    const first = await remove(calendarId).expect(503);
    expect(first.headers['retry-after']).toBe('1');
    expect(first.body.type).toBe('urn:platform:problem:calendar-still-named');
    const left = await query<{ count: number }>(
      'SELECT count(*)::int AS count FROM task.schedules WHERE calendar_id = $1',
      calendarId,
    );
    expect(left[0]?.count).toBe(REMOVED - 50_000);
    await eventually(async () => expect((await remove(calendarId)).status).toBe(204), {
      timeoutMs: 60_000,
      intervalMs: 500,
    });
    expect(await query('SELECT 1 FROM task.schedules WHERE calendar_id = $1', calendarId)).toEqual([]);
  }, 90_000);

  it('is kept if an active schedule uses it, and no schedule is changed', async () => {
    const calendarId = await create();
    await addRemoved(calendarId, 1_500);
    await post(71_001, { calendarId }).expect(201);
    await remove(calendarId).expect(409);
    const naming = await query('SELECT 1 FROM task.schedules WHERE calendar_id = $1', calendarId);
    expect(naming).toHaveLength(1_501);
  });

  it('does not block the creation of schedules that use it while its deletion waits', async () => {
    const calendarId = await create();
    await addRemoved(calendarId, 10);
    // Another transaction has locked a removed schedule. The deletion waits for it, but nothing may wait for
    // the deletion.
    await query('BEGIN');
    await query('SELECT 1 FROM task.schedules WHERE calendar_id = $1 FOR UPDATE', calendarId);
    const deletion = remove(calendarId).then(({ status }) => status);
    await waitForLock();
    const startedAt = performance.now();
    await post(71_002, { calendarId }).expect(201);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    await query('COMMIT');
    expect(await deletion).toBe(409);
  }, 30_000);

  it('does not block the creation of schedules that use it while it is changed', async () => {
    const calendarId = await create();
    // The change has locked the calendar and waits for the table of rollouts.
    await query('BEGIN');
    await query('LOCK TABLE task.calendar_rollouts IN SHARE ROW EXCLUSIVE MODE');
    const change = service.api
      .put(`/Calendars/${calendarId}`)
      .set(PARTNER)
      .send({ name: 'Holidays', excludedDates: ['2030-12-25'] })
      .then(({ status }) => status);
    await waitForLock();
    const startedAt = performance.now();
    await post(71_003, { calendarId }).expect(201);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    await query('COMMIT');
    expect(await change).toBe(200);
  }, 30_000);
});
