import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const DAY_MS = 86_400_000;
const INSTANCES_PER_FACILITY = 4_000;
/** Returns the date `offset` days from today. */
const day = (offset: number): string => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10);

describe('a changed calendar in a facility that is close to its limit of pending instances', () => {
  let service: TaskFixture;
  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  const put = (id: string, excludedDates: string[]) =>
    service.api.put(`/Calendars/${id}`).set(PARTNER).send({ name: 'Holidays', excludedDates }).expect(200);

  /**
   * Returns the number of schedules that do not follow their calendar yet, of instances on a date, and of
   * pending instances.
   */
  const state = async (facilityId: number, date: string) => {
    const [row] = await query<{ stale: number; onDate: number; pending: number }>(
      `SELECT (SELECT count(*)::int FROM task.schedules JOIN task.calendars AS calendar USING (calendar_id)
          WHERE facility_id = $1 AND schedules.calendar_revision IS DISTINCT FROM calendar.revision) AS stale,
        count(*) FILTER (WHERE (due_at AT TIME ZONE 'UTC')::date = $2::date)::int AS "onDate",
        count(*)::int AS pending
       FROM task.instances WHERE facility_id = $1 AND status = 'Pending'`,
      facilityId,
      date,
    );
    return row;
  };
  const consumedRequests = async (): Promise<number> => {
    const [row] = await query<{ count: number }>(
      `SELECT count(*)::int AS count FROM task.inbox WHERE queue = 'task-service.task-instance-generation'`,
    );
    return row?.count ?? 0;
  };
  const expectNoRequests = async () => {
    const [row] = await query<{ count: number }>(
      `SELECT count(*)::int AS count FROM task.outbox WHERE message_type LIKE '%TaskInstanceGenerationRequested'`,
    );
    expect(row?.count).toBe(0);
  };

  beforeAll(async () => {
    service = await startTaskService({
      env: { INSTANCES_PER_FACILITY: String(INSTANCES_PER_FACILITY), SCHEDULES_PER_FACILITY: '200' },
    });
  });
  afterAll(() => service.close());

  it.each([
    ['three quarters', 45_001, 100],
    ['nine tenths, with more schedules than one run covers', 45_002, 120],
  ])(
    '%s: the dates are excluded and included again, and generation ends',
    async (_, facilityId, schedules) => {
      const calendarId = randomUUID();
      await put(calendarId, []);
      for (let created = 0; created < schedules; created += 1)
        await service.api
          .post('/Schedules')
          .set(PARTNER)
          .send({ facilityId, name: 'Round', schedule: '0 9 * * *', calendarId })
          .expect(201);
      await service.api.post('/commands/generateTaskInstances').set(PARTNER).send({ facilityId }).expect(202);
      const all = schedules * 30;
      await eventually(async () =>
        expect((await state(facilityId, day(5)))?.pending).toBeGreaterThanOrEqual(all),
      );
      const before = await consumedRequests();
      await put(calendarId, [day(5)]);
      await eventually(async () =>
        expect(await state(facilityId, day(5))).toMatchObject({ stale: 0, onDate: 0 }),
      );
      await put(calendarId, []);
      await eventually(async () =>
        expect(await state(facilityId, day(5))).toMatchObject({ stale: 0, onDate: schedules }),
      );
      await eventually(expectNoRequests);
      // Each of the two changes takes one or two requests by its rollout, which has two passes, and a further
      // request after a run that did not cover all schedules. The limit is higher, because it only shows that
      // generation does not request itself without end.
      expect((await consumedRequests()) - before).toBeLessThanOrEqual(12);
    },
    90_000,
  );
});
