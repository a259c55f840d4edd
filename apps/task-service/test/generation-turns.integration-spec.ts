import { ScheduleCreatedNotification, TaskInstanceGenerationRequested } from '@platform/contracts';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const FACILITIES = [901, 902, 903];
const SCHEDULES = 30;
/** Instances of one schedule that is due every five minutes, up to the horizon. */
const INSTANCES = 30 * 24 * 12;

/**
 * One customer creates many schedules with many instances. The limits count rows, not seconds, so that they
 * do not depend on the machine.
 */
describe.each([1, 2])('generation for one customer, with %i replicas', (replicas) => {
  let service: TaskFixture;
  const create = async (facilityId: number, schedule: string): Promise<ScheduleCreatedNotification> => {
    const request = { facilityId, name: 'Round', schedule };
    const { body } = await service.api.post('/Schedules').set(PARTNER).send(request).expect(201);
    return { ...body, createdBy: { personId: null, name: null, persona: 1 } };
  };
  const countOf = async (facilityIds: readonly number[]): Promise<number> => {
    const [row] = await service.database.query<{ count: number }>(
      'SELECT count(*)::int AS count FROM task.instances WHERE facility_id = ANY ($1)',
      [facilityIds],
    );
    return row?.count ?? 0;
  };
  /** Waits until the facility has an instance, and returns how many instances the flood has by then. */
  const floodedWhenGenerated = (facilityId: number): Promise<number> =>
    eventually(
      async () => {
        expect(await countOf([facilityId])).toBeGreaterThan(0);
        return countOf(FACILITIES);
      },
      { timeoutMs: 60_000, intervalMs: 20 },
    );

  beforeAll(async () => {
    service = await startTaskService({ replicas });
  });
  afterAll(() => service.close());

  it('delays neither new schedules nor fires of another customer, and generates everything once', async () => {
    const bus = await service.connect('scheduling');
    await create(912, '0 9 * * 1');
    const flood: ScheduleCreatedNotification[] = [];
    for (let index = 0; index < SCHEDULES; index += 1)
      flood.push(await create(FACILITIES[index % FACILITIES.length] ?? 0, '*/5 * * * *'));
    const neighbour = await create(911, '0 9 * * 1');
    for (const created of [...flood, neighbour]) await bus.publish(ScheduleCreatedNotification, created);
    expect(await floodedWhenGenerated(911)).toBeLessThan((SCHEDULES * INSTANCES) / 2);
    const at = new Date().toISOString();
    await bus.publish(TaskInstanceGenerationRequested, {
      facilityId: 912,
      scheduledFireTimeUtc: at,
      fireTimeUtc: at,
      misfired: false,
      missedCount: 0,
    });
    expect(await floodedWhenGenerated(912)).toBeLessThan((SCHEDULES * INSTANCES * 3) / 4);
    await eventually(
      async () => {
        const [row] = await service.database.query<{ count: number }>(
          `SELECT count(*)::int AS count FROM task.schedules WHERE generated_until < now() + interval '29 days 23 hours'`,
        );
        expect(row?.count).toBe(0);
      },
      { timeoutMs: 120_000, intervalMs: 250 },
    );
    const rows = await service.database.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM task.instances WHERE facility_id = ANY ($1) GROUP BY schedule_id`,
      [FACILITIES],
    );
    expect(rows).toHaveLength(SCHEDULES);
    for (const { count } of rows) expect(Math.abs(count - INSTANCES)).toBeLessThanOrEqual(2);
  }, 240_000);
});
