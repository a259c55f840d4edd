import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { CUSTOMER, OWNER, PARTNER, SERVICE_PROVIDER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const DAY_MS = 86_400_000;
/** Returns the date `offset` days from today. */
const day = (offset: number): string => new Date(Date.now() + offset * DAY_MS).toISOString().slice(0, 10);

describe('calendars, occurrences and fires', () => {
  let service: TaskFixture;
  const put = (id: string, body: object, token = PARTNER) =>
    service.api.put(`/Calendars/${id}`).set(token).send(body);
  const createSchedule = async (body: object) => {
    const schedule = { name: 'Round', schedule: '0 9 * * *', ...body };
    return (await service.api.post('/Schedules').set(PARTNER).send(schedule).expect(201)).body;
  };
  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));
  const pendingDays = async (facilityId: number) => {
    const rows = await service.database.query<{ due: Date }>(
      `SELECT due_at AS due FROM task.instances WHERE facility_id = $1 AND status = 'Pending' ORDER BY due_at`,
      [facilityId],
    );
    return rows.map(({ due }) => due.toISOString().slice(0, 10));
  };

  beforeAll(async () => {
    service = await startTaskService({ env: { SCHEDULES_PER_FACILITY: '3' } });
  });
  afterAll(() => service.close());

  describe('calendars', () => {
    it('are written, read, listed and deleted', async () => {
      const id = randomUUID();
      const dates = [day(3), day(2), day(3)];
      const created = await put(id.toUpperCase(), { name: 'Holidays', excludedDates: dates }).expect(200);
      expect(created.body).toEqual({
        calendarId: id,
        name: 'Holidays',
        excludedDates: [day(2), day(3)],
        changedAtUtc: expect.any(String),
      });
      expect((await service.api.get(`/Calendars/${id}`).set(OWNER).expect(200)).body).toEqual(created.body);
      const page = await service.api.get('/Calendars').query({ pageSize: 1 }).set(CUSTOMER).expect(200);
      expect(page.body.calendars).toHaveLength(1);
      await service.api.get('/Calendars').query({ facilityId: 1 }).set(CUSTOMER).expect(400);
      await put(id, { name: 'x', excludedDates: ['2026-02-30'] }).expect(400);
      await put('x', { name: 'x', excludedDates: [] }).expect(400);
      await service.api.get('/Calendars/x').set(PARTNER).expect(400);
      await service.api.delete('/Calendars/x').set(PARTNER).expect(400);
      await put(id, { name: 'x', excludedDates: [] }, CUSTOMER).expect(403);
      await service.api.get(`/Calendars/${id}`).set(SERVICE_PROVIDER).expect(403);
      await service.api.delete(`/Calendars/${id}`).set(CUSTOMER).expect(403);
      await service.api.delete(`/Calendars/${id}`).set(PARTNER).expect(204);
      await service.api.delete(`/Calendars/${id}`).set(PARTNER).expect(404);
      await service.api.get(`/Calendars/${id}`).set(PARTNER).expect(404);
    });

    it('are replaced only if the conditions of the request hold', async () => {
      const id = randomUUID();
      const body = { name: 'Holidays', excludedDates: [] };
      const conditional = (header: 'if-match' | 'if-none-match', value: string, name = 'Holidays') =>
        put(id, { ...body, name }).set(header, value);
      await conditional('if-match', '*').expect(412);
      const first = (await conditional('if-none-match', '*').expect(200)).headers['etag'] as string;
      expect(first).toMatch(/^"[^"]+"$/);
      expect((await service.api.get(`/Calendars/${id}`).set(OWNER).expect(200)).headers['etag']).toBe(first);
      await conditional('if-none-match', '*').expect(412);
      await conditional('if-match', 'x').expect(400);
      const changes = await Promise.all(
        ['a', 'b', 'c', 'd'].map((name) => conditional('if-match', first, name)),
      );
      expect(changes.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412]);
      await service.api.delete(`/Calendars/${id}`).set(PARTNER).set('if-match', first).expect(412);
      const current = changes.find(({ status }) => status === 200)?.headers['etag'] as string;
      await conditional('if-match', `"other", ${current}`).expect(200);
      await service.api.delete(`/Calendars/${id}`).set(PARTNER).set('if-match', '*').expect(204);
      const created = await Promise.all(
        ['a', 'b', 'c'].map((name) => conditional('if-none-match', '*', name)),
      );
      expect(created.map(({ status }) => status).sort()).toEqual([200, 412, 412]);
    });

    it('never reuse an ETag that a failover has lost, nor keep the date of a clock that was ahead', async () => {
      const id = randomUUID();
      await put(id, { name: 'Holidays', excludedDates: [] }).expect(200);
      const ahead = `UPDATE task.calendars SET name = 'Holidays', changed_at = date_trunc('day', now()) + interval '2 days'
        WHERE calendar_id = $1`;
      await service.database.query(ahead, [id]);
      const lost = await put(id, { name: 'lost', excludedDates: [] }).expect(200);
      // Restores the row to its state before the lost commit, as a failover does.
      await service.database.query(ahead, [id]);
      const kept = await put(id, { name: 'kept', excludedDates: [] }).expect(200);
      expect(kept.headers['etag']).not.toBe(lost.headers['etag']);
      expect(new Date(kept.body.changedAtUtc).getTime()).toBeLessThanOrEqual(Date.now() + 1_000);
      const overwrite = put(id, { name: 'overwritten', excludedDates: [] });
      await overwrite.set('if-match', lost.headers['etag'] as string).expect(412);
    });

    it('exclude their dates, and a change regenerates the affected instances', async () => {
      const id = randomUUID();
      await put(id, { name: 'Holidays', excludedDates: [day(2)] }).expect(200);
      const { scheduleId } = await createSchedule({ facilityId: 601, calendarId: id });
      await createSchedule({ facilityId: 602 });
      for (const facilityId of [601, 602]) await generate(facilityId);
      const other = await pendingDays(602);
      expect(await pendingDays(601)).toEqual(other.filter((each) => each !== day(2)));
      await put(id, { name: 'Holidays', excludedDates: [day(4), day(5)] }).expect(200);
      await eventually(async () =>
        expect(await pendingDays(601)).toEqual(other.filter((each) => each !== day(4) && each !== day(5))),
      );
      expect(await pendingDays(602)).toEqual(other);
      const { body } = await service.api
        .get('/Instances')
        .query({ scheduleId, status: 'Cancelled' })
        .set(PARTNER)
        .expect(200);
      expect(body.instances).toEqual([
        expect.objectContaining({ cancellationCause: 'Calendar', cancelledBy: null }),
        expect.objectContaining({ cancellationCause: 'Calendar', cancelledBy: null }),
      ]);
      await service.api.delete(`/Calendars/${id}`).set(PARTNER).expect(409);
      // Without the calendar, the schedule gets instances on the excluded dates at once.
      await service.api.patch(`/Schedules/${scheduleId}`).set(PARTNER).send({ calendarId: null }).expect(200);
      expect(await pendingDays(601)).toEqual(other);
      await service.api.delete(`/Calendars/${id}`).set(PARTNER).expect(204);
    });

    it('that are put unchanged, or with a new name only, cause no generation', async () => {
      const id = randomUUID();
      const body = { name: 'Holidays', excludedDates: [day(2), day(3)] };
      const created = await put(id, body).expect(200);
      const etag = created.headers['etag'] as string;
      // A write of a rollout would block on this lock.
      await service.database.query('BEGIN');
      await service.database.query('LOCK TABLE task.calendar_rollouts IN SHARE ROW EXCLUSIVE MODE');
      try {
        const again = await put(id, { ...body, excludedDates: [day(3), day(2)] }).expect(200);
        expect([again.body, again.headers['etag']]).toEqual([created.body, etag]);
        await put(id, body).set('if-none-match', etag).expect(412);
        const renamed = await put(id, { ...body, name: 'Feasts' })
          .set('if-match', etag)
          .expect(200);
        expect(renamed.body.name).toBe('Feasts');
        expect(renamed.headers['etag']).not.toBe(etag);
      } finally {
        await service.database.query('ROLLBACK');
      }
    });

    it('are followed by a schedule that is updated before generation has seen the calendar change', async () => {
      const id = randomUUID();
      await put(id, { name: 'Holidays', excludedDates: [] }).expect(200);
      await eventually(async () =>
        expect(await service.database.query('SELECT 1 FROM task.calendar_rollouts')).toEqual([]),
      );
      const { scheduleId } = await createSchedule({ facilityId: 607, calendarId: id });
      await generate(607);
      const before = await pendingDays(607);
      const generatedUntilMs = async () => {
        const rows = await service.database.query<{ at: Date }>(
          'SELECT generated_until AS at FROM task.schedules WHERE schedule_id = $1',
          [scheduleId],
        );
        return rows[0]?.at.getTime() ?? 0;
      };
      const reachedMs = await generatedUntilMs();
      // The change is committed, but no generation has run since.
      await service.database.query(
        'UPDATE task.calendars SET excluded_dates = $2, revision = revision + 1 WHERE calendar_id = $1',
        [id, [day(4), day(5)]],
      );
      for (const change of [{ name: 'Tour' }, { description: 'mended' }, { template: { steps: 1 } }])
        await service.api.patch(`/Schedules/${scheduleId}`).set(PARTNER).send(change).expect(200);
      expect(await generatedUntilMs()).toBeGreaterThanOrEqual(reachedMs);
      await generate(607);
      expect(await pendingDays(607)).toEqual(before.filter((each) => each !== day(4) && each !== day(5)));
    });

    it('that only removed schedules use can be deleted', async () => {
      const id = randomUUID();
      await put(id, { name: 'Holidays', excludedDates: [] }).expect(200);
      const { scheduleId } = await createSchedule({ facilityId: 603, calendarId: id });
      await service.api.post(`/Schedules/${scheduleId}/commands/remove`).set(PARTNER).expect(200);
      await service.api.delete(`/Calendars/${id}`).set(PARTNER).expect(204);
      expect((await service.api.get(`/Schedules/${scheduleId}`).set(PARTNER)).body.calendarId).toBeNull();
    });
  });

  describe('occurrences', () => {
    const spring = {
      schedule: '30 2 * * *',
      timeZone: 'Europe/Berlin',
      from: '2027-03-27T00:00:00Z',
      limit: 3,
    };
    const preview = (body: object, token = PARTNER) =>
      service.api.post('/Schedules/commands/preview').set(token).send(body);

    it('of an unsaved schedule show the effect of daylight saving time', async () => {
      expect((await preview(spring, OWNER).expect(200)).body.occurrences).toEqual([
        { dueAtUtc: '2027-03-27T01:30:00.000Z', local: '2027-03-27T02:30' },
        { dueAtUtc: '2027-03-28T01:30:00.000Z', local: '2027-03-28T03:30', shift: 'skipped-hour' },
        { dueAtUtc: '2027-03-29T00:30:00.000Z', local: '2027-03-29T02:30' },
      ]);
      const autumn = { ...spring, from: '2027-10-30T12:00:00Z', limit: 1 };
      expect((await preview(autumn).expect(200)).body.occurrences).toEqual([
        { dueAtUtc: '2027-10-31T00:30:00.000Z', local: '2027-10-31T02:30', shift: 'repeated-hour' },
      ]);
    });

    it('respect the start and end dates and the calendar', async () => {
      const id = randomUUID();
      await put(id, { name: 'Holidays', excludedDates: ['2027-03-28'] }).expect(200);
      const bounded = {
        ...spring,
        calendarId: id,
        startDate: '2027-03-27',
        endDate: '2027-03-29',
        limit: 10,
      };
      const { occurrences } = (await preview(bounded).expect(200)).body;
      expect(occurrences.map((each: { local: string }) => each.local)).toEqual([
        '2027-03-27T02:30',
        '2027-03-29T02:30',
      ]);
      await preview({ ...spring, calendarId: randomUUID() }).expect(422);
      await preview({ ...spring, from: '1999-01-01T00:00:00Z' }).expect(422);
      await preview({ ...spring, limit: 1_001 }).expect(400);
      await preview({ ...spring, schedule: 'never' }).expect(400);
      // Rarely due: occurrences are searched for at most ten years ahead.
      expect((await preview({ ...spring, schedule: '0 0 29 2 */7' }).expect(200)).body.occurrences).toEqual([
        expect.objectContaining({ local: '2032-02-29T00:00' }),
      ]);
    });

    it('of a stored schedule are listed between two instants', async () => {
      const { scheduleId } = await createSchedule({ facilityId: 604 });
      const list = (query: object, token = PARTNER) =>
        service.api.get(`/Schedules/${scheduleId}/occurrences`).query(query).set(token);
      const span = { from: `${day(1)}T09:00:00Z`, to: `${day(3)}T09:00:00Z` };
      expect((await list(span).expect(200)).body.occurrences).toEqual(
        [1, 2].map((offset) => ({ dueAtUtc: `${day(offset)}T09:00:00.000Z`, local: `${day(offset)}T09:00` })),
      );
      expect((await list({ limit: 5 }).expect(200)).body.occurrences).toHaveLength(5);
      await list({ limit: 0 }).expect(400);
      await list({ until: day(1) }).expect(400);
      const farAway = await list({ from: '2026-01-01T00:00:00Z', to: '2036-01-09T00:00:01Z' }).expect(400);
      expect(farAway.body.errors).toEqual({ to: ['must be at most ten years after from'] });
      await list({ from: '2026-01-01T00:00:00Z', to: '2036-01-09T00:00:00Z' }).expect(200);
      await list({ from: '2300-01-01T00:00:00Z' }).expect(422);
      await list({}, CUSTOMER).expect(403);
      await service.api.get(`/Schedules/${randomUUID()}/occurrences`).set(PARTNER).expect(404);
    });
  });

  it('lists the fires of a trigger, latest first', async () => {
    await service.database.query(
      `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
       SELECT 501, at, at + interval '1.5 s', n = 3, CASE n WHEN 3 THEN 7 ELSE 0 END, gen_random_uuid()
       FROM generate_series(1, 3) AS n, make_timestamptz(2026, 3, n, 2, 0, 0, 'UTC') AS at`,
    );
    const list = (query: object, token = CUSTOMER) =>
      service.api.get('/Triggers/501/fires').query(query).set(token);
    const first = (await list({ pageSize: 2 }).expect(200)).body;
    expect(first.fires[0]).toEqual({
      scheduledAtUtc: '2026-03-03T02:00:00.000Z',
      firedAtUtc: '2026-03-03T02:00:01.500Z',
      lateMs: 1_500,
      misfired: true,
      missedCount: 7,
    });
    const second = (await list({ pageSize: 2, pageKey: first.nextPageKey }).expect(200)).body;
    expect(second.fires.map((fire: { scheduledAtUtc: string }) => fire.scheduledAtUtc)).toEqual([
      '2026-03-01T02:00:00.000Z',
    ]);
    await list({ status: 'x' }).expect(400);
    await service.api.get('/Triggers/503/fires').set(CUSTOMER).expect(403);
    await service.api.get('/Triggers/x/fires').set(PARTNER).expect(400);
  });

  it('generates on demand without a trigger', async () => {
    const { scheduleId } = await createSchedule({ facilityId: 605 });
    await service.api
      .post('/commands/generateTaskInstances')
      .set(CUSTOMER)
      .send({ facilityId: 605 })
      .expect(403);
    await service.api
      .post('/commands/generateTaskInstances')
      .set(PARTNER)
      .send({ facilityId: 'x' })
      .expect(400);
    await service.api
      .post('/commands/generateTaskInstances')
      .set(PARTNER)
      .send({ facilityId: 605 })
      .expect(202);
    await eventually(async () => {
      const { body } = await service.api.get('/Instances').query({ scheduleId }).set(PARTNER).expect(200);
      expect(body.instances).toHaveLength(30);
    });
  });

  it('limits the active schedules of a facility', async () => {
    const made: { scheduleId: string }[] = [];
    for (let count = 0; count < 3; count += 1) made.push(await createSchedule({ facilityId: 606 }));
    const body = { facilityId: 606, name: 'Round', schedule: '0 9 * * *' };
    const post = (key: string) =>
      service.api.post('/Schedules').set(PARTNER).set('idempotency-key', key).send(body);
    expect((await post('one').expect(422)).body.type).toBe('urn:platform:problem:schedule-limit-reached');
    const command = (name: string) =>
      service.api.post(`/Schedules/${String(made[0]?.scheduleId)}/commands/${name}`).set(PARTNER);
    await command('pause').expect(200);
    const { body: fourth } = await post('one').expect(201);
    expect((await post('one').expect(201)).body).toEqual(fourth);
    expect((await command('resume').expect(422)).body.type).toBe(
      'urn:platform:problem:schedule-limit-reached',
    );
  });
});
