import { ScheduleCreatedEvent } from '@platform/contracts';
import { bearer, eventually } from '@platform/testing';
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

const BODY = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };
const ENVELOPE_MEMBERS = [
  'messageId',
  'requestId',
  'correlationId',
  'conversationId',
  'initiatorId',
  'sourceAddress',
  'destinationAddress',
  'responseAddress',
  'faultAddress',
  'messageType',
  'message',
  'expirationTime',
  'sentTime',
  'headers',
  'host',
];
const EVENT_MEMBERS = [
  'scheduleId',
  'facilityId',
  'name',
  'schedule',
  'timeZone',
  'createdAtUtc',
  'createdBy',
];

describe('schedules', () => {
  let service: TaskFixture;
  const post = (body: object, token = PARTNER) => service.api.post('/Schedules').set(token).send(body);

  beforeAll(async () => {
    service = await startTaskService();
    await service.watch(ScheduleCreatedEvent);
  });
  afterAll(() => service.close());

  it('are created with 201, Location and their event', async () => {
    const created = await post({
      ...BODY,
      description: 'Every Monday',
      timeZone: 'Europe/Berlin',
      startDate: '2026-12-01',
      template: { checklist: ['alarm', 'exits'] },
    }).expect(201);
    expect(created.body).toEqual({
      scheduleId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      facilityId: 501,
      name: 'Fire drill',
      description: 'Every Monday',
      schedule: '0 9 * * 1',
      timeZone: 'Europe/Berlin',
      startDate: '2026-12-01',
      endDate: null,
      calendarId: null,
      template: { checklist: ['alarm', 'exits'] },
      status: 'Active',
      error: null,
      releasing: 0,
      createdAtUtc: expect.stringMatching(/^\d{4}-\d{2}-\d{2}T.*Z$/),
      createdBy: { personId: null, name: 'Ivy Internal', persona: 1 },
    });
    expect(created.headers['location']).toBe(`/Schedules/${created.body.scheduleId}`);
    const read = await service.api
      .get(created.headers['location'] ?? '')
      .set(CUSTOMER)
      .expect(200);
    expect(read.body).toEqual(created.body);
    expect([created.headers['etag'], read.headers['etag']]).toEqual(['"1"', '"1"']);
    const [event] = await service.received(ScheduleCreatedEvent, 1);
    const { scheduleId, createdAtUtc } = created.body;
    expect(event?.message).toEqual({
      scheduleId,
      facilityId: 501,
      name: 'Fire drill',
      schedule: '0 9 * * 1',
      timeZone: 'Europe/Berlin',
      createdAtUtc,
      createdBy: { personId: null, name: 'Ivy Internal', persona: 1 },
    });
    expect(event?.messageType).toEqual(['urn:message:Platform.Contracts:ScheduleCreatedEvent']);
  });

  it.each([
    'Fire drill',
    '1970-01-01T00:00:00.000Z',
    '"createdAtUtc":"1970-01-01T00:00:00.000Z"',
    '\\"createdAtUtc":"1970-01-01T00:00:00.000Z"',
  ])('send the instant of creation in their event, whatever the name: %s', async (name) => {
    const { scheduleId, createdAtUtc } = (await post({ ...BODY, name }).expect(201)).body;
    const event = await eventually(async () => {
      const events = await service.received(ScheduleCreatedEvent, 1);
      const ours = events.find(({ message }) => message.scheduleId === scheduleId);
      if (!ours) throw new Error('the event has not arrived yet');
      return ours;
    });
    expect(event.message).toMatchObject({ name, createdAtUtc });
    // Members have the order of the envelope and the contract, although the database stores the message in
    // another order.
    expect(Object.keys(event)).toEqual(ENVELOPE_MEMBERS);
    expect(Object.keys(event.message)).toEqual(EVENT_MEMBERS);
  });

  it.each([
    { who: 'InternalPartner', token: PARTNER, facilityId: 999, status: 201 },
    { who: 'Customer', token: CUSTOMER, facilityId: 502, status: 201 },
    { who: 'Customer', token: CUSTOMER, facilityId: 503, status: 403 },
    { who: 'Owner', token: OWNER, facilityId: 501, status: 201 },
    { who: 'Owner', token: OWNER, facilityId: 502, status: 403 },
    { who: 'ServiceProvider', token: SERVICE_PROVIDER, facilityId: 501, status: 403 },
    { who: 'Resident', token: RESIDENT, facilityId: 501, status: 403 },
    { who: 'nobody', token: NOBODY, facilityId: 501, status: 403 },
  ])(
    'respond to a creation by $who at facility $facilityId with $status',
    async ({ token, facilityId, status }) => {
      const answer = await post({ ...BODY, facilityId }, token).expect(status);
      if (status === 403) expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    },
  );

  it('need a token', async () => {
    await service.api.post('/Schedules').send(BODY).expect(401);
    await service.api.get('/Schedules').expect(401);
  });

  it.each<[string, object]>([
    ['facilityId', { ...BODY, facilityId: '501' }],
    ['facilityId', { ...BODY, facilityId: 0 }],
    ['facilityId', { name: 'x', schedule: '0 9 * * 1' }],
    ['name', { ...BODY, name: ' ' }],
    ['name', { ...BODY, name: 'a\u0000b' }],
    ['name', { ...BODY, name: 'x'.repeat(201) }],
    ['schedule', { ...BODY, schedule: '@daily' }],
    ['schedule', { ...BODY, schedule: '0 0 30 2 */3' }],
    ['schedule', { ...BODY, schedule: '0 0 9 * * 1' }],
    ['schedule', { ...BODY, schedule: '0 0 30 2 *' }],
    ['timeZone', { ...BODY, timeZone: 'Mars/Olympus' }],
    ['startDate', { ...BODY, startDate: '2026-02-30' }],
    ['startDate', { ...BODY, startDate: '2026-12-01T10:00:00' }],
    ['template', { ...BODY, template: [] }],
    ['template', { ...BODY, template: { text: 'x'.repeat(20_000) } }],
  ])('are refused with 400 naming %s (%#)', async (field, body) => {
    const answer = await post(body).expect(400);
    expect(Object.keys(answer.body.errors)).toContain(field);
  });

  it.each([
    '0000-01-01',
    '1999-12-31',
    '2200-01-02',
    '0000-01-01T00:00:00+01:00',
    '9999-12-31T23:59:59-23:00',
  ])('are refused if they start at %s', async (startDate) => {
    const { body } = await post({ ...BODY, startDate }).expect(422);
    expect(body.type).toBe('urn:platform:problem:instant-out-of-range');
  });

  it.each(['2000-01-02', '2199-12-31', '2000-01-01T00:00:00Z', '2199-12-31T23:59:59Z'])(
    'may start at %s',
    async (startDate) => {
      expect((await post({ ...BODY, startDate }).expect(201)).body).toMatchObject({ startDate });
    },
  );

  it.each(['/Schedules', '/Instances', '/Triggers'])(
    'refuse a misspelt filter of the list %s',
    async (path) => {
      const { body } = await service.api.get(path).query({ facilityid: 501 }).set(PARTNER).expect(400);
      expect(Object.keys(body.errors)).toEqual(['request']);
    },
  );

  it('refuse unknown members', async () => {
    await post({ ...BODY, timezone: 'Europe/Berlin' }).expect(400);
  });

  it('respond to malformed JSON with a problem', async () => {
    const answer = await service.api
      .post('/Schedules')
      .set(PARTNER)
      .set('content-type', 'application/json')
      .send('{')
      .expect(400);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
  });

  describe('lists', () => {
    it('are paged in order of creation', async () => {
      for (let index = 0; index < 5; index += 1)
        await post({ ...BODY, facilityId: 520, name: `n${String(index)}` }).expect(201);
      const names: string[] = [];
      const read = async (pageKey?: string): Promise<void> => {
        const query = { facilityId: 520, pageSize: 2, ...(pageKey === undefined ? {} : { pageKey }) };
        const { body } = await service.api.get('/Schedules').query(query).set(PARTNER).expect(200);
        names.push(...body.schedules.map((schedule: { name: string }) => schedule.name));
        if (body.nextPageKey !== null) await read(body.nextPageKey);
      };
      await read();
      expect(names).toEqual(['n0', 'n1', 'n2', 'n3', 'n4']);
    });

    it('contain only facilities of the caller', async () => {
      await post({ ...BODY, facilityId: 530 }).expect(201);
      const page = await service.api.get('/Schedules').query({ pageSize: 1000 }).set(OWNER).expect(200);
      const facilities = page.body.schedules.map((schedule: { facilityId: number }) => schedule.facilityId);
      expect(new Set(facilities)).toEqual(new Set([501]));
      await service.api.get('/Schedules').query({ facilityId: 530 }).set(OWNER).expect(403);
      const none = await service.api
        .get('/Schedules')
        .set(bearer({ facilities: [] }))
        .expect(200);
      expect(none.body).toEqual({ schedules: [], nextPageKey: null });
    });

    it.each(['forged', 'a.b', 'AAAA'])('refuse %j as a page key', async (pageKey) => {
      await service.api.get('/Schedules').query({ pageKey }).set(PARTNER).expect(400);
    });

    it('refuse a page key of another filter', async () => {
      const page = await service.api.get('/Schedules').query({ pageSize: 1 }).set(PARTNER).expect(200);
      const { nextPageKey } = page.body;
      await service.api.get('/Schedules').query({ pageKey: nextPageKey }).set(PARTNER).expect(200);
      await service.api
        .get('/Schedules')
        .query({ pageKey: nextPageKey, status: 'Active' })
        .set(PARTNER)
        .expect(400);
    });
  });

  describe('a single one', () => {
    it('is a 404 if it does not exist, and a 400 if the identifier is not valid', async () => {
      await service.api.get('/Schedules/00000000-0000-4000-8000-000000000000').set(PARTNER).expect(404);
      await service.api.get('/Schedules/none').set(PARTNER).expect(400);
    });

    it('is refused outside the facilities of the caller', async () => {
      const created = await post({ ...BODY, facilityId: 540 }).expect(201);
      await service.api.get(`/Schedules/${created.body.scheduleId}`).set(CUSTOMER).expect(403);
    });

    it('is found whatever the case of the path', async () => {
      const created = await post(BODY).expect(201);
      await service.api.get(`/schedules/${created.body.scheduleId}/`).set(PARTNER).expect(200);
    });
  });

  describe('of a caller whose token omits the facilities', () => {
    const overflowing = bearer({ facilities: [], overflow: ['facilities'] });

    it('use the facilities from auth-service, and are refused while they cannot be read', async () => {
      service.auth.identity = { facilities: [501] };
      await post(BODY, overflowing).expect(201);
      await post({ ...BODY, facilityId: 502 }, overflowing).expect(403);
      service.auth.identity = null;
      await post(BODY, overflowing).expect(503);
    });
  });
});
