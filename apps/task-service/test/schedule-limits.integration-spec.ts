import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { EndedSchedulesJob } from '../src/recurring-generation/ended-schedules.job';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const DAY_MS = 86_400_000;
let lastFacility = 70_000;

describe('limits of schedules', () => {
  let service: TaskFixture;
  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  const post = (facilityId: number, more: object = {}, token = PARTNER) =>
    service.api
      .post('/Schedules')
      .set(token)
      .send({ facilityId, name: 'Round', schedule: '0 9 * * *', ...more });
  const create = async (facilityId: number, more: object = {}): Promise<string> =>
    (await post(facilityId, more).expect(201)).body.scheduleId;
  const patch = (id: string, body: object, token = PARTNER) =>
    service.api.patch(`/Schedules/${id}`).set(token).send(body);
  const command = (id: string, name: string) =>
    service.api.post(`/Schedules/${id}/commands/${name}`).set(PARTNER);
  const get = async (id: string) => (await service.api.get(`/Schedules/${id}`).set(PARTNER).expect(200)).body;
  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));
  const pending = async (facilityId: number): Promise<number> => {
    const rows = await query<{ count: number }>(
      `SELECT count(*)::int AS count FROM task.instances WHERE facility_id = $1 AND status = 'Pending'`,
      facilityId,
    );
    return rows[0]?.count ?? 0;
  };
  const counted = async (name: string): Promise<number> =>
    (await service.app.get(Metrics).registry.getSingleMetric(name)?.get())?.values[0]?.value ?? 0;
  const typeOf = (problem: string) => `urn:platform:problem:${problem}`;

  beforeAll(async () => {
    service = await startTaskService({
      env: { INSTANCES_PER_FACILITY: '100', SCHEDULE_CHANGES_PER_HOUR: '5', SCHEDULES_PER_FACILITY: '3' },
    });
  });
  afterAll(() => service.close());

  describe('pending instances of a facility', () => {
    it('refuse a new schedule, an update and a resumption above the limit with 422, and count them', async () => {
      const facilityId = (lastFacility += 1);
      const before = await counted('task_instance_limit_refusals_total');
      expect((await post(facilityId, { schedule: '0 * * * *' }).expect(422)).body.type).toBe(
        typeOf('instance-limit-reached'),
      );
      const first = await create(facilityId);
      const paused = await create(facilityId);
      await command(paused, 'pause').expect(200);
      // Instances count before they are generated.
      expect((await patch(first, { schedule: '0 */6 * * *' }).expect(422)).body.type).toBe(
        typeOf('instance-limit-reached'),
      );
      await patch(first, { schedule: '0 9,15 * * *' }).expect(200);
      await patch(paused, { schedule: '0 9,15 * * *' }).expect(200);
      expect((await command(paused, 'resume').expect(422)).body.type).toBe(typeOf('instance-limit-reached'));
      await patch(first, { schedule: '0 9 * * *' }).expect(200);
      await command(paused, 'resume').expect(200);
      expect(await counted('task_instance_limit_refusals_total')).toBe(before + 3);
    });

    it('do not affect a repeated request, which returns the first schedule', async () => {
      const facilityId = (lastFacility += 1);
      const send = () =>
        post(facilityId, { schedule: '0 9,12,15 * * *' }).set(
          'idempotency-key',
          `budget-${String(facilityId)}`,
        );
      const first = await send().expect(201);
      await generate(facilityId);
      expect((await send().expect(201)).body.scheduleId).toBe(first.body.scheduleId);
      await post(facilityId, { schedule: '0 9,12,15 * * *' }).expect(422);
    });

    it('limit generation of all schedules equally, and count the limited run', async () => {
      const facilityId = (lastFacility += 1);
      const [one, other] = [await create(facilityId), await create(facilityId)];
      // Simulates schedules that are older than the limit.
      await query(
        `UPDATE task.schedules SET schedule = '0 9,12,15 * * *' WHERE facility_id = $1`,
        facilityId,
      );
      const before = await counted('task_generation_limited_total');
      await generate(facilityId);
      expect(await pending(facilityId)).toBeLessThanOrEqual(100);
      for (const id of [one, other]) {
        const rows = await query(`SELECT 1 FROM task.instances WHERE schedule_id = $1`, id);
        expect(rows.length).toBeGreaterThan(35);
      }
      expect(await counted('task_generation_limited_total')).toBe(before + 1);
      // Generation continues without gaps once there is room again.
      await query(
        `UPDATE task.instances SET status = 'Completed', completed_at = now() WHERE facility_id = $1`,
        facilityId,
      );
      await generate(facilityId);
      expect(await pending(facilityId)).toBeGreaterThan(80);
    });

    it('do not refuse changes that reduce them, even above the limit', async () => {
      const facilityId = (lastFacility += 1);
      const id = await create(facilityId);
      await query(
        `INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
         SELECT $1, $2, 'Round', date_trunc('hour', now()) + n * interval '1 hour' FROM generate_series(1, 300) AS n`,
        id,
        facilityId,
      );
      await patch(id, { schedule: '0 8 * * *' }).expect(200);
      await command(id, 'remove').expect(200);
    });
  });

  describe('changes within an hour', () => {
    it('are refused above the limit with 429 and Retry-After, except a removal', async () => {
      const facilityId = (lastFacility += 1);
      const id = await create(facilityId);
      const before = await counted('task_schedule_change_refusals_total');
      for (let hour = 1; hour <= 4; hour += 1)
        await patch(id, { schedule: `0 ${String(hour)} * * *` }).expect(200);
      await command(id, 'pause').expect(200);
      await patch(id, { schedule: '0 4 * * *' }).expect(200);
      await command(id, 'pause').expect(200);
      const refused = await patch(id, { name: 'x' }).expect(429);
      expect(refused.body.type).toBe(typeOf('schedule-changed-too-often'));
      const retryAfter = Number(refused.headers['retry-after']);
      expect(retryAfter).toBeGreaterThan(3_500);
      expect(retryAfter).toBeLessThanOrEqual(3_600);
      await command(id, 'resume').expect(429);
      expect(await counted('task_schedule_change_refusals_total')).toBe(before + 2);
      await query(
        `UPDATE task.schedules SET changes_since = now() - interval '1 hour' WHERE schedule_id = $1`,
        id,
      );
      await command(id, 'resume').expect(200);
      for (let hour = 5; hour <= 8; hour += 1)
        await patch(id, { schedule: `0 ${String(hour)} * * *` }).expect(200);
      await patch(id, { name: 'x' }).expect(429);
      await command(id, 'remove').expect(200);
    });

    it('are counted from zero if a clock set ahead has started the hour', async () => {
      const id = await create((lastFacility += 1));
      for (let change = 1; change <= 5; change += 1) await patch(id, { name: String(change) }).expect(200);
      await patch(id, { name: 'x' }).expect(429);
      await query(
        `UPDATE task.schedules SET changes_since = now() + interval '1 day' WHERE schedule_id = $1`,
        id,
      );
      await patch(id, { name: 'x' }).expect(200);
      const count =
        'SELECT change_count, changes_since <= now() AS "isPast" FROM task.schedules WHERE schedule_id = $1';
      expect(await service.database.query(count, [id])).toEqual([{ change_count: 1, isPast: true }]);
    });

    it('are counted per schedule, even if concurrent', async () => {
      const facilityId = (lastFacility += 1);
      const [id, other] = [await create(facilityId), await create(facilityId)];
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) => patch(id, { name: `n${String(index)}` })),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses.filter((status) => status === 200)).toHaveLength(5);
      expect(statuses.filter((status) => status === 429)).toHaveLength(7);
      await patch(other, { name: 'x' }).expect(200);
    });
  });

  describe('the end of a schedule', () => {
    const ended = new Date(Date.now() - 2 * DAY_MS).toISOString();
    /** Creates a daily schedule whose end has passed. */
    const createEnded = async (facilityId: number): Promise<string> => {
      const id = await create(facilityId, { endDate: '2150-01-01' });
      await query(`UPDATE task.schedules SET end_date = $2 WHERE schedule_id = $1`, id, ended.slice(0, 10));
      return id;
    };

    it('in the past is refused with 400, in creations and updates', async () => {
      const facilityId = (lastFacility += 1);
      const id = await create(facilityId);
      for (const endDate of [ended, ended.slice(0, 10), '2001-01-01'])
        for (const answer of [await post(facilityId, { endDate }), await patch(id, { endDate })]) {
          expect(answer.status).toBe(400);
          expect(answer.body.errors).toEqual({ endDate: ['must not be in the past'] });
        }
      const today = new Date().toISOString().slice(0, 10);
      await patch(id, { endDate: today }).expect(200);
    });

    it('once passed makes it Ended: it no longer counts, is listed as Ended, and can be extended', async () => {
      const facilityId = (lastFacility += 1);
      const [first, second, third] = [
        await createEnded(facilityId),
        await createEnded(facilityId),
        await create(facilityId),
      ];
      expect((await post(facilityId)).body.type).toBe(typeOf('schedule-limit-reached'));
      expect(await service.app.get(EndedSchedulesJob).run()).toBeGreaterThanOrEqual(2);
      expect((await get(first)).status).toBe('Ended');
      const list = async (status?: string): Promise<string[]> => {
        const { body } = await service.api
          .get('/Schedules')
          .query({ facilityId, ...(status === undefined ? {} : { status }) })
          .set(PARTNER)
          .expect(200);
        return (body.schedules as { scheduleId: string }[]).map(({ scheduleId }) => scheduleId);
      };
      expect(await list('Ended')).toEqual([first, second]);
      expect(await list('Active')).toEqual([third]);
      expect(await list()).toEqual([first, second, third]);
      const all = await service.api
        .get('/Schedules')
        .query({ status: 'Ended', pageSize: 1_000 })
        .set(PARTNER);
      expect(all.body.schedules.map((each: { scheduleId: string }) => each.scheduleId)).toContain(first);
      const fourth = await create(facilityId);
      expect((await command(first, 'resume').expect(200)).body.status).toBe('Ended');
      expect((await patch(first, { name: 'x' }).expect(200)).body.status).toBe('Ended');
      expect((await patch(first, { endDate: null }).expect(200)).body.status).toBe('Active');
      await generate(facilityId);
      expect((await patch(second, { endDate: null }).expect(422)).body.type).toBe(
        typeOf('schedule-limit-reached'),
      );
      expect((await command(second, 'pause').expect(200)).body.status).toBe('Paused');
      expect((await command(second, 'resume').expect(200)).body.status).toBe('Ended');
      expect((await command(second, 'remove').expect(200)).body.status).toBe('Removed');
      expect((await get(fourth)).status).toBe('Active');
    });

    it('once passed keeps fires from locking or writing the row', async () => {
      const facilityId = (lastFacility += 1);
      const id = await createEnded(facilityId);
      await generate(facilityId);
      expect((await get(id)).status).toBe('Ended');
      const version = () =>
        query('SELECT xmin::text, xmax::text FROM task.schedules WHERE schedule_id = $1', id);
      const before = await version();
      await generate(facilityId);
      expect(await version()).toEqual(before);
    });

    it('waits for the next fire to generate instances that were due before it', async () => {
      const facilityId = (lastFacility += 1);
      const id = await create(facilityId, { endDate: '2150-01-01' });
      await query(
        `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
         VALUES ($1::bigint, $1::text, 'g', 'j', '0 2 1 1 *', 'UTC', now() + interval '20 days')`,
        facilityId,
      );
      await query(
        `UPDATE task.schedules SET end_date = $2::date, generated_until = $2::date - 2 WHERE schedule_id = $1`,
        id,
        ended.slice(0, 10),
      );
      await service.app.get(EndedSchedulesJob).run();
      expect((await get(id)).status).toBe('Active');
      await generate(facilityId);
      expect((await get(id)).status).toBe('Ended');
      expect(await pending(facilityId)).toBe(3);
    });

    it.each([
      { trigger: 'no trigger', state: null, generated: 3 },
      { trigger: 'a paused trigger', state: 'PAUSED', generated: 3 },
      { trigger: 'a trigger in ERROR', state: 'ERROR', generated: 3 },
      { trigger: 'no trigger and no active unit', state: null, generated: 0, isInactive: true },
    ])('generates instances that were due before it at once with $trigger', async (at) => {
      const facilityId = (lastFacility += 1);
      const id = await create(facilityId, { endDate: '2150-01-01' });
      if (at.state !== null)
        await query(
          `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
           VALUES ($1::bigint, $1::text, 'g', 'j', '0 2 1 1 *', 'UTC', $2, now() + interval '20 days')`,
          facilityId,
          at.state,
        );
      if (at.isInactive)
        await query(
          'INSERT INTO task.facility_activity (facility_id, inactive_since) VALUES ($1, now())',
          facilityId,
        );
      await query(
        `UPDATE task.schedules SET end_date = $2::date, generated_until = $2::date - 2 WHERE schedule_id = $1`,
        id,
        ended.slice(0, 10),
      );
      const before = await pending(facilityId);
      await service.app.get(EndedSchedulesJob).run();
      expect((await get(id)).status).toBe('Ended');
      expect((await pending(facilityId)) - before).toBe(at.generated);
    });

    it('can be moved by release 1.0.0, which makes the schedule Active again', async () => {
      const facilityId = (lastFacility += 1);
      const id = await createEnded(facilityId);
      await service.app.get(EndedSchedulesJob).run();
      await query(
        `UPDATE task.schedules SET end_date = '2150-01-01', revision = revision + 1 WHERE schedule_id = $1`,
        id,
      );
      await eventually(async () => expect((await get(id)).status).toBe('Active'));
    });
  });

  it('apply to customers as well', async () => {
    await post(501, { schedule: '*/5 * * * *' }, CUSTOMER).expect(422);
  });
});
