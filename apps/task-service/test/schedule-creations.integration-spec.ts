import { randomUUID } from 'node:crypto';
import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const problem = (name: string): string => `urn:platform:problem:${name}`;

describe('creations of schedules', () => {
  let service: TaskFixture;
  let calendarId: string;
  const post = (facilityId: number, more: object = {}) =>
    service.api
      .post('/Schedules')
      .set(PARTNER)
      .send({ facilityId, name: 'Round', schedule: '0 9 * * *', ...more });
  const remove = (id: string) => service.api.post(`/Schedules/${id}/commands/remove`).set(PARTNER);
  const value = async (name: string, bound?: string): Promise<number> => {
    const metric = await service.app.get(Metrics).registry.getSingleMetric(name)?.get();
    return metric?.values.find(({ labels }) => bound === undefined || labels.bound === bound)?.value ?? 0;
  };
  const inUse = async (): Promise<string | undefined> =>
    (await service.app.get(Metrics).registry.metrics())
      .split('\n')
      .find((line) => line.startsWith('database_pool_connections{database="task",state="in_use"}'))
      ?.split(' ')
      .at(-1);
  /** Returns the duration of the request in ms. */
  const timed = async (request: Promise<unknown>): Promise<number> => {
    const startedAt = performance.now();
    await request;
    return performance.now() - startedAt;
  };

  beforeAll(async () => {
    service = await startTaskService({
      env: { SCHEDULE_CREATIONS_PER_HOUR: '50', SCHEDULES_PER_FACILITY: '45' },
    });
    calendarId = randomUUID();
    const calendar = service.api.put(`/Calendars/${calendarId}`).set(PARTNER);
    await calendar.send({ name: 'Holidays', excludedDates: [] }).expect(200);
  });
  afterEach(() => service.database.query('ROLLBACK'));
  afterAll(() => service.close());

  it('are refused above the hourly limit, even if all created schedules were removed', async () => {
    const before = await value('task_schedule_creation_refusals_total');
    const key = randomUUID();
    const first = await post(901).set('idempotency-key', key).expect(201);
    await remove(first.body.scheduleId).expect(200);
    for (let index = 1; index < 50; index += 1) await remove((await post(901).expect(201)).body.scheduleId);
    const refused = await post(901).expect(429);
    expect(refused.body.type).toBe(problem('schedules-created-too-often'));
    const retryAfter = Number(refused.headers['retry-after']);
    expect(retryAfter).toBeGreaterThan(3_000);
    expect(retryAfter).toBeLessThanOrEqual(3_600);
    expect(await value('task_schedule_creation_refusals_total')).toBe(before + 1);
    // A repeated request creates nothing, and other facilities have limits of their own.
    const again = await post(901).set('idempotency-key', key).expect(201);
    expect(again.body.scheduleId).toBe(first.body.scheduleId);
    await post(902).expect(201);
    await service.database.query(
      `UPDATE task.schedules SET created_at = created_at - interval '1 hour' WHERE schedule_id = $1`,
      [first.body.scheduleId],
    );
    await post(901).expect(201);
    await post(901).expect(429);
    // Schedules dated ahead by a wrong clock do not count for this hour.
    await service.database.query(
      `UPDATE task.schedules SET created_at = created_at + interval '1 day' WHERE facility_id = 901`,
    );
    await post(901).expect(201);
  }, 60_000);

  it('are refused with another problem type above the limit of active schedules', async () => {
    for (let index = 0; index < 45; index += 1) await post(903).expect(201);
    expect((await post(903).expect(422)).body.type).toBe(problem('schedule-limit-reached'));
  }, 60_000);

  it('of one facility leave connections for reads and other facilities while a calendar is locked', async () => {
    const before = await value('task_change_slot_refusals_total', 'share');
    await service.database.query('BEGIN');
    await service.database.query('SELECT 1 FROM task.calendars WHERE calendar_id = $1 FOR UPDATE', [
      calendarId,
    ]);
    const held = Promise.all(Array.from({ length: 40 }, () => post(904, { calendarId })));
    await eventually(async () => expect(Number(await inUse())).toBeGreaterThan(0));
    for (let index = 0; index < 5; index += 1) {
      const read = service.api.get('/Schedules?facilityId=905').set(PARTNER).expect(200);
      expect(await timed(Promise.resolve(read))).toBeLessThan(1_000);
      expect(await timed(Promise.resolve(post(905).expect(201)))).toBeLessThan(1_000);
    }
    await eventually(async () => expect(await inUse()).toBe('1'));
    await service.database.query('COMMIT');
    const answers = await held;
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(19);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(21);
    for (const { body, headers } of refused) {
      expect(body.type).toBe(problem('too-many-changes-at-once'));
      expect(headers['retry-after']).toBe('1');
    }
    expect(await value('task_change_slot_refusals_total', 'share')).toBe(before + 19);
  }, 60_000);

  it('of one facility use at most two batches while a shared template is locked', async () => {
    const template = { text: 'x'.repeat(300) };
    await post(906, { template }).expect(201);
    await service.database.query(`UPDATE task.templates SET used_at = now() - interval '2 hours'`);
    await service.database.query('BEGIN');
    await service.database.query('SELECT 1 FROM task.templates FOR UPDATE');
    const held = Promise.all(Array.from({ length: 20 }, () => post(906, { template })));
    await eventually(async () => expect(Number(await inUse())).toBeGreaterThan(0));
    for (let index = 0; index < 5; index += 1) {
      const read = service.api.get('/Schedules?facilityId=907').set(PARTNER).expect(200);
      expect(await timed(Promise.resolve(read))).toBeLessThan(1_000);
      expect(await timed(Promise.resolve(post(907).expect(201)))).toBeLessThan(1_000);
    }
    expect(Number(await inUse())).toBeLessThanOrEqual(2);
    await service.database.query('COMMIT');
    const statuses = new Set((await held).map(({ status }) => status));
    expect(statuses).toEqual(new Set([201]));
  }, 60_000);
});
