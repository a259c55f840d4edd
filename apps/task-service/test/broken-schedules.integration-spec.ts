import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { DAY_MS } from '@platform/time';
import fc from 'fast-check';
import { DataSource } from 'typeorm';
import { runAdmin } from '../src/admin/administration';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { ReconciliationJob } from '../src/reconciliation/reconciliation.job';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/**
 * Column values that this release cannot evaluate, as another release, another runtime or manual SQL may
 * leave them.
 */
const DAMAGES = [
  `time_zone = 'Mars/X'`,
  `time_zone = ''`,
  `schedule = '0 9 * *'`,
  `schedule = '61 * * * *'`,
  `schedule = 'FREQ=DAILY'`,
  `start_date = 'soon'`,
  `end_date = 'later'`,
] as const;
let lastFacility = 50_000;

describe('a schedule that cannot be evaluated', () => {
  let service: TaskFixture;
  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  const create = async (facilityId: number, more: object = {}): Promise<string> => {
    const body = { facilityId, name: 'Round', schedule: '0 9 * * *', ...more };
    return (await service.api.post('/Schedules').set(PARTNER).send(body).expect(201)).body.scheduleId;
  };
  const damage = (id: string, how: string) =>
    query(`UPDATE task.schedules SET ${how} WHERE schedule_id = $1`, id);
  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));
  const pending = async (id: string) =>
    (await query(`SELECT 1 FROM task.instances WHERE schedule_id = $1 AND status = 'Pending'`, id)).length;
  /** Waits until generation of the facility has ended. */
  const noRequests = (facilityId: number) =>
    eventually(async () =>
      expect(
        await query(
          `SELECT 1 FROM task.outbox WHERE facility_id = $1 AND message_type = 'ITaskInstanceGenerationRequested'`,
          facilityId,
        ),
      ).toEqual([]),
    );
  const get = async (id: string) => (await service.api.get(`/Schedules/${id}`).set(PARTNER).expect(200)).body;
  const patch = (id: string, body: object) => service.api.patch(`/Schedules/${id}`).set(PARTNER).send(body);
  const command = (id: string, name: string) =>
    service.api.post(`/Schedules/${id}/commands/${name}`).set(PARTNER);

  beforeAll(async () => {
    service = await startTaskService();
  });
  afterAll(() => service.close());

  it('does not affect its siblings, whatever their order, and reports its error', async () => {
    const damagedSchedule = fc.record({ at: fc.nat(3), how: fc.constantFrom(...DAMAGES) });
    await fc.assert(
      fc.asyncProperty(damagedSchedule, async ({ at, how }) => {
        const facilityId = (lastFacility += 1);
        const ids = await Promise.all([1, 2, 3, 4].map(() => create(facilityId)));
        const ordered = ids.toSorted();
        const broken = ordered[at] ?? '';
        await damage(broken, how);
        await generate(facilityId);
        for (const id of ids) {
          expect(await pending(id)).toBe(id === broken ? 0 : 30);
          const { error, status } = await get(id);
          expect(status).toBe('Active');
          if (id === broken) expect(error).toMatch(/^(schedule|timeZone|startDate|endDate) /);
          else expect(error).toBeNull();
        }
      }),
      { numRuns: 20 },
    );
  }, 120_000);

  it.each(DAMAGES)('with %s is repaired by an update, which generates its instances', async (how) => {
    const facilityId = (lastFacility += 1);
    const id = await create(facilityId);
    await damage(id, how);
    await generate(facilityId);
    expect((await get(id)).error).not.toBeNull();
    expect((await patch(id, { description: 'still broken' }).expect(200)).body.error).not.toBeNull();
    const refused = await patch(
      id,
      how.startsWith('schedule') ? { timeZone: 'Europe/Paris' } : { schedule: '0 8 * * *' },
    );
    expect([refused.status, refused.body.type]).toEqual([422, 'urn:platform:problem:schedule-not-evaluable']);
    await service.api.get(`/Schedules/${id}/occurrences`).set(PARTNER).expect(422);
    const repair = { schedule: '0 7 * * *', timeZone: 'UTC', startDate: null, endDate: null };
    expect((await patch(id, repair).expect(200)).body).toMatchObject({ error: null, status: 'Active' });
    expect(await pending(id)).toBeGreaterThanOrEqual(29);
  });

  it.each(DAMAGES)('with %s can be paused and removed', async (how) => {
    const facilityId = (lastFacility += 1);
    const [paused, removed] = [await create(facilityId), await create(facilityId)];
    await generate(facilityId);
    for (const id of [paused, removed]) await damage(id, how);
    await generate(facilityId);
    await command(paused, 'pause').expect(200);
    expect((await command(paused, 'resume')).status).toBe(422);
    await command(removed, 'remove').expect(200);
    expect([await pending(paused), await pending(removed)]).toEqual([0, 0]);
  });

  it('is evaluated again in each run, and recovers by itself under a release that can evaluate it', async () => {
    const facilityId = (lastFacility += 1);
    const id = await create(facilityId);
    await query(`ALTER TABLE task.schedules DISABLE TRIGGER evaluated_anew`);
    await damage(id, `time_zone = 'Mars/X'`);
    await generate(facilityId);
    await damage(id, `time_zone = 'UTC'`);
    await query(`ALTER TABLE task.schedules ENABLE TRIGGER evaluated_anew`);
    expect((await get(id)).error).not.toBeNull();
    await generate(facilityId);
    expect((await get(id)).error).toBeNull();
    expect(await pending(id)).toBe(30);
  });

  it('does not stop reconciliation of the others, by the job or by the command line', async () => {
    const facilityId = (lastFacility += 1);
    const [broken, sound] = [await create(facilityId), await create(facilityId)];
    await damage(broken, `time_zone = 'Mars/X'`);
    await query(
      `UPDATE task.schedules SET created_at = created_at - interval '2 hours', generated_until = generated_until - interval '2 hours'
       WHERE facility_id = $1`,
      facilityId,
    );
    let output = '';
    const env = {
      DATABASE_URL: service.database.url,
      RABBITMQ_MAIN_URL: service.brokers.main.url,
      RABBITMQ_SCHEDULING_URL: service.brokers.scheduling.url,
    };
    const write = (text: string) => void (output += text);
    expect(await runAdmin(['reconcile', '--json'], { env, write })).toBe(0);
    expect(JSON.parse(output)).toContainEqual(
      expect.objectContaining({ problem: 'schedule without instances', id: sound }),
    );
    await service.app.get(ReconciliationJob).run();
    await eventually(async () => expect(await pending(sound)).toBeGreaterThanOrEqual(30));
    expect(await pending(broken)).toBe(0);
  });

  it('does not keep its siblings from following their calendar, even if 150 broken ones come first', async () => {
    const facilityId = (lastFacility += 1);
    const calendarId = randomUUID();
    const putCalendar = (excludedDates: string[]) =>
      service.api
        .put(`/Calendars/${calendarId}`)
        .set(PARTNER)
        .send({ name: 'Holidays', excludedDates })
        .expect(200);
    await putCalendar([]);
    const sound = await create(facilityId, { calendarId });
    await generate(facilityId);
    await query(
      `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
         created_by_persona, request_digest, calendar_id, calendar_revision)
       SELECT ('00000000-0000-4000-8000-' || to_char(n, 'FM000000000000'))::uuid, $1, 'Round', '0 9 * * *', 'Mars/X', now(), 's', 1, '', $2, 1
       FROM generate_series(1, 150) AS n`,
      facilityId,
      calendarId,
    );
    expect(await pending(sound)).toBe(30);
    const inAWeek = new Date(Date.now() + 7 * DAY_MS).toISOString().slice(0, 10);
    await putCalendar([inAWeek]);
    await generate(facilityId);
    expect(await pending(sound)).toBe(29);
    const unreadable = await query(
      `SELECT 1 FROM task.schedules WHERE facility_id = $1 AND error IS NOT NULL`,
      facilityId,
    );
    expect(unreadable).toHaveLength(150);
    await noRequests(facilityId);
  });

  it('is independent of a broken trigger: a sound schedule of its facility is still generated', async () => {
    const facilityId = (lastFacility += 1);
    const id = await create(facilityId);
    await query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
       VALUES ($1::bigint, $1::text, 'g', 'j', '0 2 * * *', 'Mars/X', now() + interval '1 day')`,
      facilityId,
    );
    await generate(facilityId);
    expect(await pending(id)).toBe(30);
  });
});
