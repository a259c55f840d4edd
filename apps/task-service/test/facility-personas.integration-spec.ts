import { Persona } from '@platform/personas';
import { bearer } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const { Customer, Owner, Resident, ServiceProvider } = Persona;
/** The detail of a refused facility, which differs from that of a refused persona. */
const NO_FACILITY = 'The facility is not among those of the caller.';

/** Rita lives in 501 and is a customer in 777. */
const RITA = { personId: 1003, sub: 'personid:1003', name: 'Rita Resident' };
const BOTH = { ...RITA, personas: Customer | Resident, facilities: [501, 777] };
const PAIRED = { ...BOTH, facilityPersonas: [Resident, Customer] };
/** Tess is the technician of 501 and lives in 502. */
const TESS = {
  personId: 1004,
  sub: 'personid:1004',
  name: 'Tess Tech',
  personas: ServiceProvider | Resident,
  facilities: [501, 502],
  facilityPersonas: [ServiceProvider, Resident],
};

describe('a facility that a caller has with one of several personas', () => {
  let service: TaskFixture;
  let scheduleOf501: string;

  beforeAll(async () => {
    service = await startTaskService();
    scheduleOf501 = await createSchedule(501);
    await createSchedule(777);
  });
  afterAll(() => service.close());
  beforeEach(() => {
    service.auth.identity = null;
  });

  const scheduleAt = (facilityId: number): object => ({ facilityId, name: 'Round', schedule: '0 9 * * 1' });
  async function createSchedule(facilityId: number): Promise<string> {
    const { body } = await service.api
      .post('/Schedules')
      .set(PARTNER)
      .send(scheduleAt(facilityId))
      .expect(201);
    return (body as { scheduleId: string }).scheduleId;
  }
  async function createInstance(facilityId: number): Promise<string> {
    const scheduleId = await createSchedule(facilityId);
    const [row] = await service.database.query<{ id: string }>(
      `INSERT INTO task.instances (schedule_id, facility_id, name, due_at) VALUES ($1, $2, 'x', now())
       RETURNING task_instance_id AS id`,
      [scheduleId, facilityId],
    );
    return row!.id;
  }
  const create = (claims: object, facilityId: number) =>
    service.api
      .post('/Schedules')
      .set(bearer({ ...claims }))
      .send(scheduleAt(facilityId));
  const isRefused = async (sent: ReturnType<typeof create>): Promise<void> => {
    const { status, body } = await sent;
    expect({ status, detail: (body as { detail?: string }).detail }).toEqual({
      status: 403,
      detail: NO_FACILITY,
    });
  };

  it('grants the rights of that persona only: a resident of 501 and customer of 777 creates only in 777', async () => {
    await isRefused(create(PAIRED, 501));
    await create(PAIRED, 777).expect(201);
    await isRefused(create({ ...RITA, personas: Customer, facilities: [777] }, 501));
    expect((await create({ ...RITA, personas: Resident, facilities: [501] }, 501)).status).toBe(403);
  });

  it('refuses commands that only another persona may send', async () => {
    for (const command of ['pause', 'resume', 'remove'])
      await isRefused(
        service.api.post(`/Schedules/${scheduleOf501}/commands/${command}`).set(bearer({ ...PAIRED })),
      );
    await isRefused(
      service.api
        .patch(`/Schedules/${scheduleOf501}`)
        .set(bearer({ ...PAIRED }))
        .send({ name: 'Mine' }),
    );
    const { body } = await service.api.get(`/Schedules/${scheduleOf501}`).set(PARTNER).expect(200);
    expect(body).toMatchObject({ name: 'Round', status: 'Active' });
  });

  it('refuses reads that only another persona may send', async () => {
    const headers = bearer({ ...PAIRED });
    await isRefused(service.api.get('/Schedules?facilityId=501').set(headers));
    await isRefused(service.api.get('/Instances?facilityId=501').set(headers));
    await isRefused(service.api.get('/Triggers?facilityId=501').set(headers));
    await isRefused(service.api.get('/Triggers/501/fires').set(headers));
    await isRefused(service.api.get(`/Schedules/${scheduleOf501}`).set(headers));
    await isRefused(service.api.get(`/Schedules/${scheduleOf501}/occurrences`).set(headers));
    const { body } = await service.api.get('/Schedules').set(headers).expect(200);
    const listed = (body as { schedules: { facilityId: number }[] }).schedules;
    expect(new Set(listed.map(({ facilityId }) => facilityId))).toEqual(new Set([777]));
  });

  it('lets a technician of 501 and resident of 502 read and complete instances of 501 only', async () => {
    const [of501, of502] = [await createInstance(501), await createInstance(502)];
    const complete = (id: string) =>
      service.api.post(`/Instances/${id}/commands/complete`).set(bearer({ ...TESS }));
    await isRefused(complete(of502));
    await isRefused(service.api.get(`/Instances/${of502}`).set(bearer({ ...TESS })));
    await complete(of501).expect(200);
  });

  it('lets a technician of 501 and owner of 502 read both and cancel in 502 only', async () => {
    const [of501, of502] = [await createInstance(501), await createInstance(502)];
    const owner = bearer({
      ...TESS,
      personas: ServiceProvider | Owner,
      facilityPersonas: [ServiceProvider, Owner],
    });
    await service.api.get(`/Instances/${of501}`).set(owner).expect(200);
    await service.api.get(`/Instances/${of502}`).set(owner).expect(200);
    await isRefused(service.api.post(`/Instances/${of501}/commands/cancel`).set(owner));
    await service.api.post(`/Instances/${of502}/commands/cancel`).set(owner).expect(200);
  });

  describe('if the token does not name the persona of each facility', () => {
    it.each([
      ['returns all facilities', { ...PAIRED }],
      [
        'returns fewer facilities',
        { personas: BOTH.personas, facilities: [777], facilityPersonas: [Customer] },
      ],
    ])(
      'applies the pairs of auth-service, which %s',
      async (_, { personas, facilities, facilityPersonas }) => {
        service.auth.identity = { personas, facilities, facilityPersonas };
        await isRefused(create(BOTH, 501));
        await create(BOTH, 777).expect(201);
      },
    );

    it.each([
      ['is unavailable', null],
      ['returns no pairs, like release 1.0.0', { personas: BOTH.personas, facilities: BOTH.facilities }],
      ['returns inconsistent pairs', { ...BOTH, facilityPersonas: [Customer] }],
    ])('grants nothing while auth-service %s', async (_, identity) => {
      service.auth.identity = identity;
      expect((await create(BOTH, 501)).status).toBe(503);
      expect((await create(BOTH, 777)).status).toBe(503);
    });

    it('does not call auth-service if every persona of the token suffices', async () => {
      await create({ ...BOTH, personas: Customer | Owner }, 501).expect(201);
      await create({ ...BOTH, personas: Customer }, 501).expect(201);
      await create({ ...BOTH, personas: Persona.InternalPartner | Resident }, 501).expect(201);
    });
  });

  it('refuses a token whose pairs do not match its facilities', async () => {
    expect((await create({ ...BOTH, facilityPersonas: [Customer] }, 777)).status).toBe(401);
  });
});
