import { randomUUID } from 'node:crypto';
import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** HTTP gets eight of these connections: six for reads, of which one caller may use two. */
const POOL = { DATABASE_POOL_SIZE: '14', DATABASE_POOL_CONSUMERS: '4', DATABASE_POOL_RELAY: '2' };

const READS = [
  '/Instances',
  '/Instances/{id}',
  '/Schedules',
  '/Schedules/{id}',
  '/Schedules/{id}/occurrences',
  '/Calendars/{id}',
  '/Triggers',
  '/Triggers/501/fires',
];
const PREVIEW = '/Schedules/commands/preview';

describe('reads of one caller', () => {
  let service: TaskFixture;
  const value = async (name: string, labels: object): Promise<number> => {
    const metric = await service.app.get(Metrics).registry.getSingleMetric(name)?.get();
    const found = metric?.values.find((each) =>
      Object.entries(labels).every(([label, text]) => each.labels[label] === text),
    );
    return found?.value ?? 0;
  };

  beforeAll(async () => {
    service = await startTaskService({ env: POOL });
  });
  afterEach(() => service.database.query('ROLLBACK'));
  afterAll(() => service.close());

  it('leave connections for other callers, and are refused when 100 of them wait', async () => {
    const before = await value('task_read_refusals_total', { bound: 'share' });
    await service.database.query('BEGIN');
    await service.database.query('LOCK TABLE task.calendars IN ACCESS EXCLUSIVE MODE');
    const flood = Promise.all(Array.from({ length: 105 }, () => service.api.get('/Calendars').set(PARTNER)));
    await eventually(async () =>
      expect(await value('task_read_refusals_total', { bound: 'share' })).toBe(before + 3),
    );
    const paths = READS.map((path) => path.replace('{id}', randomUUID()));
    await Promise.all([
      ...paths.map((path) => service.api.get(path).set(PARTNER).expect(429)),
      service.api.post(PREVIEW).set(PARTNER).send({ schedule: '0 9 * * *' }).expect(429),
    ]);
    for (const path of ['/Instances', '/Schedules', '/Triggers', '/Instances?status=Pending']) {
      const startedAt = performance.now();
      await service.api.get(path).set(CUSTOMER).expect(200);
      expect(performance.now() - startedAt).toBeLessThan(2_000);
    }
    await service.database.query('COMMIT');
    const answers = await flood;
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(3);
    for (const { body, headers } of refused) {
      expect(body.type).toBe('urn:platform:problem:too-many-reads-at-once');
      expect(headers['retry-after']).toBe('1');
    }
    // The others got their slot, or gave up after waiting three seconds.
    const statuses = new Set(answers.map(({ status }) => status));
    expect([...statuses].filter((status) => ![200, 429, 503].includes(status))).toEqual([]);
    await service.api.get('/Calendars').set(PARTNER).expect(200);
  }, 60_000);
});
