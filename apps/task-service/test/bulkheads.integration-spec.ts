import { ScheduleCreatedEvent, ScheduleCreatedNotification } from '@platform/contracts';
import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** Five queues with a prefetch of ten each, the relay and HTTP share these. */
const POOL = { DATABASE_POOL_SIZE: '10', DATABASE_POOL_CONSUMERS: '3', DATABASE_POOL_RELAY: '3' };
const BODY = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };

describe('consumers that are held up', () => {
  let service: TaskFixture;
  const post = () => service.api.post('/Schedules').set(PARTNER).send(BODY).expect(201);
  const metric = async (line: string): Promise<number> => {
    const text = await service.app.get(Metrics).registry.metrics();
    return Number(
      text
        .split('\n')
        .find((each) => each.startsWith(`${line} `))
        ?.split(' ')
        .at(-1),
    );
  };

  beforeAll(async () => {
    service = await startTaskService({ env: POOL });
    await service.watch(ScheduleCreatedEvent);
  });
  afterAll(() => service.close());

  it('leave HTTP and the relay their share of the connections, show that they wait, and lose nothing', async () => {
    const bus = await service.connect('scheduling');
    const { body } = await post();
    const release = await holdUp(service);
    const created = { ...body, createdBy: { personId: null, name: null, persona: 1 } };
    for (let index = 0; index < 20; index += 1) await bus.publish(ScheduleCreatedNotification, created);
    await eventually(async () => {
      expect(await metric('database_pool_connections{database="consumers",state="in_use"}')).toBe(3);
      expect(await metric('messaging_deliveries_waiting')).toBe(7);
    });
    for (let index = 0; index < 20; index += 1) await post();
    await service.received(ScheduleCreatedEvent, 21);
    await service.api.get('/health/ready').expect(200);
    await release();
    await eventually(async () => {
      expect(await service.database.query('SELECT 1 FROM task.inbox')).toHaveLength(20);
      expect(await metric('messaging_deliveries_waiting')).toBe(0);
    });
    expect(await metric('database_pool_connections_max{database="task"}')).toBe(4);
  });
});

/** Makes every consumer's first statement wait. Gives what ends that. */
async function holdUp({ database }: TaskFixture): Promise<() => Promise<void>> {
  await database.query('BEGIN');
  await database.query('LOCK TABLE task.inbox IN SHARE MODE');
  return async () => {
    await database.query('COMMIT');
  };
}
