import { randomUUID } from 'node:crypto';
import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const AT_ONCE = 'urn:platform:problem:too-many-changes-at-once';

describe('concurrent changes of schedules', () => {
  let service: TaskFixture;
  const create = async (facilityId: number): Promise<string> => {
    const body = { facilityId, name: 'Round', schedule: '0 9 * * *' };
    return (await service.api.post('/Schedules').set(PARTNER).send(body).expect(201)).body.scheduleId;
  };
  const patch = (id: string, name: string) =>
    service.api.patch(`/Schedules/${id}`).set(PARTNER).send({ name });
  const list = () => service.api.get('/Schedules?facilityId=702').set(PARTNER);
  const inUse = async (): Promise<string | undefined> =>
    (await service.app.get(Metrics).registry.metrics())
      .split('\n')
      .find((line) => line.startsWith('database_pool_connections{database="task",state="in_use"}'))
      ?.split(' ')
      .at(-1);

  const refusals = async (): Promise<number | undefined> => {
    const counter = service.app.get(Metrics).registry.getSingleMetric('task_change_slot_refusals_total');
    return (await counter?.get())?.values.find(({ labels }) => labels.bound === 'share')?.value;
  };

  beforeAll(async () => {
    service = await startTaskService();
  });
  afterAll(() => service.close());

  it('leave connections for reads while a schedule is locked', async () => {
    const id = await create(701);
    const second = await create(702);
    await service.database.query('BEGIN');
    await service.database.query('SELECT 1 FROM task.schedules WHERE schedule_id = ANY ($1) FOR UPDATE', [
      [id, second],
    ]);
    const changes = Promise.all(Array.from({ length: 40 }, (_, index) => patch(id, `n${String(index)}`)));
    await eventually(async () => expect(Number(await inUse())).toBeGreaterThan(0));
    for (let index = 0; index < 10; index += 1) {
      const startedAt = performance.now();
      await list().expect(200);
      expect(performance.now() - startedAt).toBeLessThan(1_000);
    }
    // A recurring job may hold another connection for a moment.
    await eventually(async () => expect(await inUse()).toBe('1'));
    await eventually(async () => expect(await refusals()).toBe(19));
    const held = Promise.all([patch(second, 'held')]);
    await eventually(async () => expect(await inUse()).toBe('2'));
    // The queue of this schedule is full, so other changes of it are refused.
    for (const command of ['pause', 'resume', 'remove'])
      await service.api.post(`/Schedules/${id}/commands/${command}`).set(PARTNER).expect(429);
    // Changes of a calendar have to wait too, because the caller already has two changes running.
    const calendar = `/Calendars/${randomUUID()}`;
    const document = { name: 'Holidays', excludedDates: [] };
    const puts = Promise.all(
      Array.from({ length: 21 }, () => service.api.put(calendar).set(PARTNER).send(document)),
    );
    await eventually(async () => expect(await refusals()).toBe(23));
    await service.api.delete(calendar).set(PARTNER).expect(429);
    await service.database.query('COMMIT');
    expect((await puts).filter(({ status }) => status === 429)).toHaveLength(1);
    const answers = await changes;
    expect((await held)[0]?.status).toBe(200);
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(40 - refused.length);
    expect(refused).toHaveLength(19);
    for (const { body, headers } of refused) {
      expect(body.type).toBe(AT_ONCE);
      expect(headers['retry-after']).toBe('1');
    }
    expect(await refusals()).toBe(24);
  }, 60_000);
});
