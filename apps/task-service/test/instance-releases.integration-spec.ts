import { randomUUID } from 'node:crypto';
import { SchedulePausedEvent, ScheduleUpdatedEvent } from '@platform/contracts';
import { eventually, testSize } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** Instances of one schedule, due every minute from tomorrow on. A facility may have 200,000. */
const INSTANCES = testSize('TEST_RELEASED_INSTANCES', { quick: 30_000, full: 60_000 });
/**
 * Maximum instances that one transaction cancels, including the transaction of the change itself, so that a
 * response never waits for more.
 */
const INSTANCES_PER_STEP = 5_000;
const RELEASE_LIMIT_MS = 240_000;
let lastFacility = 40_000;

describe('a change of a schedule with very many instances to come', () => {
  let service: TaskFixture;

  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  const api = (replica = 0) => service.apis[replica] as TaskFixture['api'];
  const get = async (id: string) => (await api().get(`/Schedules/${id}`).set(PARTNER).expect(200)).body;
  const command = (id: string, name: string) =>
    api().post(`/Schedules/${id}/commands/${name}`).set(PARTNER).expect(200);
  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));

  async function create(more: object = {}): Promise<{ id: string; facilityId: number }> {
    const facilityId = (lastFacility += 1);
    const body = { facilityId, name: 'Round', schedule: '* * * * *', ...more };
    const { body: created } = await api().post('/Schedules').set(PARTNER).send(body).expect(201);
    return { id: created.scheduleId, facilityId };
  }

  /** Creates a schedule with instances as generated under a trigger that fires once a year. */
  async function createFilled(
    more: object = {},
    count = INSTANCES,
  ): Promise<{ id: string; facilityId: number }> {
    const schedule = await create(more);
    await query(
      `INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
       SELECT $1, $2, 'Round', date_trunc('day', now(), 'UTC') + interval '1 day' + n * interval '1 minute'
       FROM generate_series(1, $3::int) AS n`,
      schedule.id,
      schedule.facilityId,
      count,
    );
    await query(
      `UPDATE task.schedules SET generated_until = (SELECT max(due_at) FROM task.instances WHERE schedule_id = $1)
       WHERE schedule_id = $1`,
      schedule.id,
    );
    return schedule;
  }

  async function states(id: string): Promise<Record<string, number>> {
    const rows = await query<{ state: string; count: number }>(
      `SELECT status || coalesce(' ' || cancellation_cause, '') AS state, count(*)::int AS count
       FROM task.instances WHERE schedule_id = $1 GROUP BY 1`,
      id,
    );
    return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
  }

  const released = (id: string) =>
    eventually(async () => expect((await get(id)).releasing).toBe(0), { timeoutMs: RELEASE_LIMIT_MS });

  /** Returns how many instances each transaction cancelled, in the order of the transactions. */
  async function cancelledByTransaction(id: string): Promise<number[]> {
    const rows = await query<{ count: number }>(
      `SELECT count(*)::int AS count FROM task.released_instances WHERE schedule_id = $1
       GROUP BY xmin ORDER BY min(due_at)`,
      id,
    );
    return rows.map(({ count }) => count);
  }
  const fullBatches = Array.from({ length: INSTANCES / INSTANCES_PER_STEP }, () => INSTANCES_PER_STEP);

  beforeAll(async () => {
    service = await startTaskService({ replicas: 2, env: { SCHEDULE_CHANGES_PER_HOUR: '1000' } });
  });
  afterAll(() => service.close());

  it('a pause takes effect at once, reports how many instances remain, and survives a restart', async () => {
    await service.watch(SchedulePausedEvent);
    const { id } = await createFilled();
    const { body } = await command(id, 'pause');
    expect(body).toMatchObject({ status: 'Paused' });
    expect(body.releasing).toBeGreaterThan(INSTANCES / 2);
    const listed = await api().get('/Schedules').query({ facilityId: lastFacility }).set(PARTNER).expect(200);
    expect(listed.body.schedules[0].releasing).toBeGreaterThan(0);
    await service.restart();
    await released(id);
    expect(await states(id)).toEqual({ 'Cancelled Pause': INSTANCES });
    expect(await cancelledByTransaction(id)).toEqual(fullBatches);
    const [event] = await service.received(SchedulePausedEvent, 1);
    expect(event?.message.cancelledInstances).toBe(INSTANCES);
    const causes = await query(
      `SELECT DISTINCT cancelled_by_name AS name, cancelled_at AS at FROM task.released_instances WHERE schedule_id = $1`,
      id,
    );
    expect(causes).toEqual([{ name: 'Ivy Internal', at: new Date(event?.message.changedAtUtc ?? '') }]);
  }, 300_000);

  it('a removal replaces a pause that is still in progress, and cancels all instances', async () => {
    const { id } = await createFilled();
    await command(id, 'pause');
    expect((await command(id, 'remove')).body.status).toBe('Removed');
    await released(id);
    const { Pending, ...cancelled } = await states(id);
    expect(Pending).toBeUndefined();
    expect(Object.values(cancelled).reduce((sum, count) => sum + count, 0)).toBe(INSTANCES);
    expect(await cancelledByTransaction(id)).toEqual(fullBatches);
  }, 300_000);

  it('an update cancels exactly the instances that are no longer due, and its event has their number', async () => {
    await service.watch(ScheduleUpdatedEvent);
    const { id } = await createFilled();
    const kept = (sql: string) =>
      query<{ id: string }>(
        `SELECT task_instance_id AS id FROM task.instances
         WHERE schedule_id = $1 AND extract(minute FROM due_at) = 0 AND ${sql} ORDER BY due_at`,
        id,
      );
    const before = await kept('true');
    await api()
      .patch(`/Schedules/${id}`)
      .set(PARTNER)
      .send({ schedule: '0 * * * *', name: 'Hourly' })
      .expect(200);
    await released(id);
    // The remaining instances may get their new name after the last cancellation.
    await eventually(
      async () => {
        const all = await kept(`status = 'Pending' AND name = 'Hourly'`);
        const ids = new Set(all.map((row) => row.id));
        expect(before.filter((row) => !ids.has(row.id))).toEqual([]);
      },
      { timeoutMs: RELEASE_LIMIT_MS },
    );
    expect((await states(id))['Cancelled Update']).toBe(INSTANCES - before.length);
    expect(Math.max(...(await cancelledByTransaction(id)))).toBeLessThan(INSTANCES_PER_STEP);
    const events = await service.received(ScheduleUpdatedEvent, 1);
    const [event] = events.filter(({ message }) => message.scheduleId === id);
    expect(event?.message.cancelledInstances).toBe(INSTANCES - before.length);
  }, 300_000);

  it('a resumption during the pause leaves one pending instance per instant', async () => {
    const { id, facilityId } = await createFilled();
    await command(id, 'pause');
    await command(id, 'resume');
    await released(id);
    expect(Math.max(...(await cancelledByTransaction(id)))).toBeLessThanOrEqual(INSTANCES_PER_STEP);
    const missing = async (): Promise<number> => {
      const [gap] = await query<{ missing: number }>(
        `SELECT 43000 - count(*)::int AS missing FROM ONLY task.instances
         WHERE schedule_id = $1 AND status = 'Pending' AND due_at > now() AND due_at <= now() + interval '43000 minutes'`,
        id,
      );
      return Math.abs(gap?.missing ?? -1);
    };
    // Generation runs in batches, each of which requests the next one.
    await generate(facilityId);
    await eventually(async () => expect(await missing()).toBeLessThanOrEqual(1), { timeoutMs: 60_000 });
    const twice = await query(
      `SELECT due_at FROM ONLY task.instances WHERE schedule_id = $1 AND status = 'Pending' GROUP BY 1 HAVING count(*) > 1`,
      id,
    );
    expect(twice).toEqual([]);
  }, 300_000);

  it('a calendar change also cancels in batches', async () => {
    const calendarId = randomUUID();
    const put = (excludedDates: string[]) =>
      api().put(`/Calendars/${calendarId}`).set(PARTNER).send({ name: 'x', excludedDates }).expect(200);
    await put([]);
    const { id, facilityId } = await createFilled({ calendarId });
    await query(`UPDATE task.schedules SET calendar_revision = 1 WHERE schedule_id = $1`, id);
    const dates = Array.from({ length: 12 }, (_, index) =>
      new Date(Date.now() + (index + 2) * 86_400_000).toISOString().slice(0, 10),
    );
    await put(dates);
    await generate(facilityId);
    await released(id);
    await eventually(async () => expect((await states(id))['Cancelled Calendar']).toBe(dates.length * 1_440));
  }, 300_000);

  it('a completion before the release of its instance is kept', async () => {
    const { id } = await createFilled();
    const [last] = await query<{ id: string }>(
      `SELECT task_instance_id AS id FROM task.instances WHERE schedule_id = $1 ORDER BY due_at DESC LIMIT 1`,
      id,
    );
    await command(id, 'pause');
    const { status } = await api(1)
      .post(`/Instances/${String(last?.id)}/commands/complete`)
      .set(PARTNER);
    await released(id);
    const { Completed = 0, Pending = 0 } = await states(id);
    expect([Completed, Pending]).toEqual([status === 200 ? 1 : 0, 0]);
  }, 300_000);
});

describe('an update that changes no instant', () => {
  let service: TaskFixture;
  beforeAll(async () => {
    service = await startTaskService();
  });
  afterAll(() => service.close());

  const due = (id: string) =>
    service.database.query<{ id: string; due: Date; name: string }>(
      `SELECT task_instance_id AS id, due_at AS due, name FROM task.instances
       WHERE schedule_id = $1 AND status = 'Pending' ORDER BY due_at`,
      [id],
    );

  it.each([
    [{ name: 'Another' }],
    [{ template: { a: 1 } }],
    [{ description: 'x' }],
    [{ schedule: '00 09 * * *' }],
    [{ timeZone: 'Etc/UTC' }],
    [{ startDate: '2020-01-01' }],
    [{ endDate: '2150-01-01' }],
  ])('%j cancels no instance, even beyond the current horizon', async (change) => {
    const facilityId = (lastFacility += 1);
    const { body } = await service.api
      .post('/Schedules')
      .set(PARTNER)
      .send({ facilityId, name: 'Round', schedule: '0 9 * * *' })
      .expect(201);
    const id = body.scheduleId as string;
    // Instances as generated while the facility's trigger fired once a year. It has no trigger now, so the
    // horizon is 30 days.
    await service.database.query(
      `INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
       SELECT $1, $2, 'Round', date_trunc('day', now(), 'UTC') + n * interval '1 day' + interval '9 hours'
       FROM generate_series(1, 403) AS n`,
      [id, facilityId],
    );
    await service.database.query(
      `UPDATE task.schedules SET generated_until = now() + interval '403 days' WHERE schedule_id = $1`,
      [id],
    );
    const before = await due(id);
    await service.api.patch(`/Schedules/${id}`).set(PARTNER).send(change).expect(200);
    const after = await due(id);
    expect(after.filter((each) => before.some((row) => row.id === each.id)).map((each) => each.id)).toEqual(
      before.map((each) => each.id),
    );
    const to = new Date((before.at(-1)?.due.getTime() ?? 0) + 1).toISOString();
    const { body: computed } = await service.api
      .get(`/Schedules/${id}/occurrences`)
      .query({ to, limit: 1_000 })
      .set(PARTNER)
      .expect(200);
    const occurrences = computed.occurrences as { dueAtUtc: string }[];
    const dueFromNow = after
      .map((each) => each.due.toISOString())
      .filter((at) => at >= new Date().toISOString());
    expect(dueFromNow).toEqual(
      occurrences.map(({ dueAtUtc }) => dueAtUtc).filter((at) => dueFromNow.includes(at)),
    );
    expect(new Set(after.slice(1).map((each) => each.name))).toEqual(
      new Set(['name' in change ? change.name : 'Round']),
    );
  });
});
