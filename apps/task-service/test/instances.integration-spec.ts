import { randomUUID } from 'node:crypto';
import { TaskInstanceCompletedEvent } from '@platform/contracts';
import { eventually } from '@platform/testing';
import {
  CUSTOMER,
  NOBODY,
  OWNER,
  PARTNER,
  RESIDENT,
  SERVICE_PROVIDER,
  startTaskService,
} from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('task instances', () => {
  let service: TaskFixture;
  let scheduleId = '';
  /** A schedule of another facility. */
  let otherScheduleId = '';

  /** Inserts an instance as generation would. */
  const instance = async (
    overrides: { facilityId?: number; status?: string; dueAt?: string } = {},
  ): Promise<string> => {
    const {
      facilityId = 501,
      status = 'Pending',
      dueAt = new Date(1_780_000_000_000 + Math.random() * 1e10).toISOString(),
    } = overrides;
    const taskInstanceId = randomUUID();
    await service.database.query(
      `INSERT INTO task.instances (task_instance_id, schedule_id, facility_id, name, due_at, status)
       VALUES ($1, $2, $3, 'Fire drill', $4, $5)`,
      [taskInstanceId, facilityId === 502 ? otherScheduleId : scheduleId, facilityId, dueAt, status],
    );
    return taskInstanceId;
  };
  const complete = (id: string, token = CUSTOMER) =>
    service.api.post(`/Instances/${id}/commands/complete`).set(token);
  const completedEvents = async (taskInstanceId: string) => {
    await eventually(async () => {
      expect(await service.database.query('SELECT 1 FROM task.outbox')).toHaveLength(0);
    });
    return (await service.received(TaskInstanceCompletedEvent, 0)).filter(
      ({ message }) => message.taskInstanceId === taskInstanceId,
    );
  };

  beforeAll(async () => {
    service = await startTaskService();
    await service.watch(TaskInstanceCompletedEvent);
    const body = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };
    const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    scheduleId = created.body.scheduleId;
    const other = await service.api
      .post('/Schedules')
      .set(PARTNER)
      .send({ ...body, facilityId: 502 })
      .expect(201);
    otherScheduleId = other.body.scheduleId;
    // No queue is bound to this event here, so it would be returned again and again.
    await service.database.query('DELETE FROM task.outbox');
  });
  afterAll(() => service.close());

  it('are completed with their event', async () => {
    const id = await instance({ dueAt: '2026-03-02T08:00:00Z' });
    const answer = await complete(id)
      .send({ completedAt: '2026-03-02T08:30:00+01:00', notes: 'all out in 4 min' })
      .expect(200);
    const completedBy = { personId: 1001, name: 'Carl Customer', persona: 2 };
    expect(answer.body).toEqual({
      taskInstanceId: id,
      scheduleId,
      facilityId: 501,
      name: 'Fire drill',
      dueAtUtc: '2026-03-02T08:00:00.000Z',
      status: 'Completed',
      completedAtUtc: '2026-03-02T07:30:00.000Z',
      completedBy,
      notes: 'all out in 4 min',
      template: null,
      cancelledAtUtc: null,
      cancelledBy: null,
      cancellationCause: null,
      cancellationReason: null,
    });
    expect((await service.api.get(`/Instances/${id}`).set(CUSTOMER).expect(200)).body).toEqual(answer.body);
    const [event, ...others] = await completedEvents(id);
    expect(others).toEqual([]);
    expect(event?.message).toEqual({
      taskInstanceId: id,
      scheduleId,
      facilityId: 501,
      dueAtUtc: '2026-03-02T08:00:00.000Z',
      completedAtUtc: '2026-03-02T07:30:00.000Z',
      completedBy,
    });
  });

  it('are completed as of now by default, with or without a body', async () => {
    for (const body of [undefined, {}]) {
      const answer = await complete(await instance())
        .send(body)
        .expect(200);
      const ageMs = Date.now() - Date.parse(answer.body.completedAtUtc);
      expect(Math.abs(ageMs)).toBeLessThan(60_000);
      expect(answer.body.notes).toBeNull();
    }
  });

  it('respond to a repeated completion with the first one, and send no second event', async () => {
    const id = await instance();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        complete(id)
          .send({ notes: `try ${String(index)}` })
          .expect(200),
      ),
    );
    const again = await complete(id, PARTNER).send({ notes: 'later' }).expect(200);
    for (const answer of answers) expect(answer.body).toEqual(again.body);
    expect(await completedEvents(id)).toHaveLength(1);
  });

  it('cannot be completed after cancellation', async () => {
    const id = await instance({ status: 'Cancelled' });
    await complete(id).send({}).expect(409);
    expect(await completedEvents(id)).toHaveLength(0);
  });

  it('are a 404 if they do not exist, and a 400 if the identifier is not valid', async () => {
    const unknown = randomUUID();
    await complete(unknown).send({}).expect(404);
    await service.api.get(`/Instances/${unknown}`).set(CUSTOMER).expect(404);
    await complete('none').send({}).expect(400);
  });

  it.each([
    [{ completedAt: 'yesterday' }, ['completedAt']],
    [{ completedAt: '2026-03-02T08:00:00', notes: 7 }, ['completedAt', 'notes']],
    [{ notes: 7 }, ['notes']],
    [{ note: 'misspelt' }, ['request']],
    [[], ['request']],
    ['text', ['request']],
  ])('refuse %j as a completion, with errors of the fields %j', async (body, fields) => {
    const id = await instance();
    const refused = complete(id).set('content-type', 'application/json').send(JSON.stringify(body));
    const { errors = {} } = (await refused.expect(400)).body;
    expect(Object.keys(errors).sort()).toEqual(fields);
    expect((await service.api.get(`/Instances/${id}`).set(CUSTOMER)).body.status).toBe('Pending');
  });

  it.each([
    ['instant-out-of-range', '0000-01-01T00:00:00+01:00'],
    ['instant-out-of-range', '9999-12-31T23:59:59-23:00'],
    ['completed-before-creation', '2000-01-01T00:00:00Z'],
    ['completed-before-creation', new Date(Date.now() - 367 * 86_400_000).toISOString()],
    ['completed-in-the-future', new Date(Date.now() + 3_600_000).toISOString()],
    ['completed-in-the-future', '2199-12-31T23:59:59Z'],
  ])('refuse as %s a completion at %s', async (reason, completedAt) => {
    const id = await instance();
    const { body } = await complete(id).send({ completedAt }).expect(422);
    expect(body.type).toBe(`urn:platform:problem:${reason}`);
    expect((await service.api.get(`/Instances/${id}`).set(CUSTOMER)).body.status).toBe('Pending');
  });

  it.each([
    { who: 'InternalPartner', token: PARTNER, facilityId: 999, status: 200 },
    { who: 'Customer', token: CUSTOMER, facilityId: 502, status: 200 },
    { who: 'Customer', token: CUSTOMER, facilityId: 503, status: 403 },
    { who: 'Owner', token: OWNER, facilityId: 501, status: 200 },
    { who: 'Owner', token: OWNER, facilityId: 502, status: 403 },
    { who: 'ServiceProvider', token: SERVICE_PROVIDER, facilityId: 501, status: 200 },
    { who: 'ServiceProvider', token: SERVICE_PROVIDER, facilityId: 503, status: 403 },
    { who: 'Resident', token: RESIDENT, facilityId: 501, status: 403 },
    { who: 'nobody', token: NOBODY, facilityId: 501, status: 403 },
  ])(
    'respond to reads and completions by $who at facility $facilityId with $status',
    async ({ token, facilityId, status }) => {
      const id = await instance({ facilityId });
      await service.api.get(`/Instances/${id}`).set(token).expect(status);
      await complete(id, token).send({}).expect(status);
    },
  );

  it('need a token', async () => {
    await service.api.post(`/Instances/${randomUUID()}/commands/complete`).expect(401);
    await service.api.get('/Instances').expect(401);
  });

  it.each([
    { of: 'a facility', year: 2031, who: CUSTOMER, filter: () => ({ facilityId: 502, status: 'Pending' }) },
    { of: 'all facilities of the caller', year: 2032, who: CUSTOMER, filter: () => ({}) },
    { of: 'all', year: 2033, who: PARTNER, filter: () => ({ status: 'Pending' }) },
    { of: 'a schedule', year: 2034, who: CUSTOMER, filter: () => ({ scheduleId: otherScheduleId }) },
    {
      of: 'a schedule, for InternalPartner',
      year: 2035,
      who: PARTNER,
      filter: () => ({ scheduleId: otherScheduleId, facilityId: 502 }),
    },
  ])('of $of are listed by due time between two instants, in pages', async ({ year, who, filter }) => {
    const day = (n: number): string => `${String(year)}-01-0${String(n)}T00:00:00.000Z`;
    for (const n of [3, 1, 2, 4]) await instance({ facilityId: 502, dueAt: day(n) });
    const query = { ...filter(), dueFrom: day(1), dueTo: day(4), pageSize: 2 };
    const due: string[] = [];
    const read = async (pageKey?: string): Promise<void> => {
      const { body } = await service.api
        .get('/Instances')
        .query({ ...query, pageKey })
        .set(who)
        .expect(200);
      due.push(...body.instances.map((each: { dueAtUtc: string }) => each.dueAtUtc));
      if (body.nextPageKey !== null) await read(body.nextPageKey);
    };
    await read();
    expect(due).toEqual([day(1), day(2), day(3)]);
  });

  it('are listed for the facilities of the caller only', async () => {
    const ours = await service.api.get('/Instances').query({ pageSize: 1000 }).set(OWNER).expect(200);
    expect(new Set(ours.body.instances.map((each: { facilityId: number }) => each.facilityId))).toEqual(
      new Set([501]),
    );
    await service.api.get('/Instances').query({ facilityId: 502 }).set(OWNER).expect(403);
  });

  it.each([
    ['an offset that PostgreSQL does not support', '2026-01-01T00:00:00+23:00', '2027-01-01T00:00:00-23:00'],
    ['the year 0', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59Z'],
  ])('are listed by due time also with %s', async (_what, dueFrom, dueTo) => {
    const taskInstanceId = await instance({ facilityId: 509 });
    const query = { facilityId: 509, dueFrom, dueTo };
    const { body } = await service.api.get('/Instances').query(query).set(PARTNER).expect(200);
    expect(body.instances).toContainEqual(expect.objectContaining({ taskInstanceId }));
  });

  it.each([
    { status: 'Open' },
    { facilityId: 'x' },
    { dueFrom: 'today' },
    { pageSize: 1001 },
    { pageSize: 0 },
    { pageKey: 'x' },
    { facilityid: 501 },
    { status: 'Pending', page: 2 },
  ])('refuse %j as a query', async (query) => {
    await service.api.get('/Instances').query(query).set(PARTNER).expect(400);
  });
});
