import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const AT_ONCE = 'urn:platform:problem:too-many-changes-at-once';

describe('concurrent commands', () => {
  let service: TaskFixture;
  let instances: string[];

  const command = (path: string) => service.api.post(path).set(PARTNER).send({});
  const inUse = async (): Promise<number> => {
    const gauge = await service.app.get(Metrics).registry.getSingleMetric('database_pool_connections')?.get();
    const found = gauge?.values.find(
      ({ labels }) => labels['database'] === 'task' && labels['state'] === 'in_use',
    );
    return found?.value ?? 0;
  };
  const refusals = async (): Promise<number> => {
    const counter = service.app.get(Metrics).registry.getSingleMetric('task_change_slot_refusals_total');
    return (await counter?.get())?.values.find(({ labels }) => labels['bound'] === 'share')?.value ?? 0;
  };
  /**
   * Sends the same command 40 times while its row is locked. Meanwhile other requests are served, and only
   * one connection waits for the lock.
   */
  const flood = async (path: string, lock: string, values: unknown[], expected: number): Promise<void> => {
    const before = await refusals();
    await service.database.query('BEGIN');
    await service.database.query(lock, values);
    const changes = Promise.all(Array.from({ length: 40 }, () => command(path)));
    await eventually(async () => expect(await inUse()).toBeGreaterThan(0));
    for (let index = 0; index < 5; index += 1) {
      const startedAt = performance.now();
      await service.api.get('/Instances?facilityId=501').set(CUSTOMER).expect(200);
      expect(performance.now() - startedAt).toBeLessThan(1_000);
    }
    // A recurring job may hold another connection for a moment.
    await eventually(async () => expect(await inUse()).toBe(1));
    await eventually(async () => expect(await refusals()).toBe(before + 19));
    await service.database.query('COMMIT');
    const answers = await changes;
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(19);
    for (const { body, headers } of refused) {
      expect(body.type).toBe(AT_ONCE);
      expect(headers['retry-after']).toBe('1');
    }
    expect(answers.filter(({ status }) => status === expected)).toHaveLength(21);
  };

  beforeAll(async () => {
    service = await startTaskService();
    const body = { facilityId: 501, name: 'Round', schedule: '0 9 * * *' };
    await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    const generate = service.api.post('/commands/generateTaskInstances').set(PARTNER);
    await generate.send({ facilityId: 501 }).expect(202);
    await eventually(async () => {
      const list = await service.api.get('/Instances?facilityId=501&status=Pending').set(PARTNER).expect(200);
      instances = list.body.instances.map(({ taskInstanceId }: { taskInstanceId: string }) => taskInstanceId);
      expect(instances.length).toBeGreaterThan(2);
    });
    await service.database.query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at, state)
       VALUES (501, 'facility-501', 'g', 'j', '0 2 * * *', 'UTC', now() + interval '1 day', 'WAITING')`,
    );
  });
  afterEach(() => service.database.query('ROLLBACK'));
  afterAll(() => service.close());

  it.each(['complete', 'cancel'])(
    'leave connections for others while an instance to %s is locked',
    async (name) => {
      const id = instances[name === 'complete' ? 0 : 1];
      const lock = 'SELECT 1 FROM task.instances WHERE task_instance_id = $1 FOR UPDATE';
      await flood(`/Instances/${String(id)}/commands/${name}`, lock, [id], 200);
    },
    60_000,
  );

  it.each(['pause', 'resume'])(
    'leave connections for others while a trigger to %s is locked',
    async (name) => {
      const lock = 'SELECT 1 FROM task.triggers WHERE facility_id = 501 FOR UPDATE';
      await flood(`/Triggers/501/commands/${name}`, lock, [], 200);
    },
    60_000,
  );

  it('leave connections for others while requests for generation cannot be stored', async () => {
    const lock = 'LOCK TABLE task.outbox IN SHARE MODE';
    const path = '/commands/generateTaskInstances';
    const send = () => service.api.post(path).set(PARTNER).send({ facilityId: 501 });
    await service.database.query('BEGIN');
    await service.database.query(lock);
    const before = await refusals();
    const requests = Promise.all(Array.from({ length: 40 }, send));
    await eventually(async () => expect(await refusals()).toBe(before + 19));
    await service.api.get('/Instances?facilityId=501').set(CUSTOMER).expect(200);
    await service.database.query('COMMIT');
    const statuses = (await requests).map(({ status }) => status);
    expect(statuses.filter((status) => status === 429)).toHaveLength(19);
    expect(statuses.filter((status) => status === 202)).toHaveLength(21);
  }, 60_000);
});
