import { PurgeInboxJob } from '@platform/messaging';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { eventually } from '@platform/testing';
import {
  FireRetentionJob,
  InstanceRetentionJob,
  ReleasedRetentionJob,
  RemovedScheduleRetentionJob,
  TemplateRetentionJob,
} from '../src/retention.job';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const JOBS = [
  FireRetentionJob,
  InstanceRetentionJob,
  ReleasedRetentionJob,
  RemovedScheduleRetentionJob,
  TemplateRetentionJob,
] as const;

describe('while the clocks of the database and the replica differ', () => {
  let service: TaskFixture;

  beforeAll(async () => {
    service = await startTaskService({
      env: { INSTANCE_RETENTION_DAYS: '100', REMOVED_SCHEDULE_RETENTION_DAYS: '10' },
    });
  });
  afterAll(() => service.close());

  it.each([-31_000, 31_000])('by %d ms, nothing is purged', async (differenceMs) => {
    const schedule = { facilityId: 77, name: 'Inspect', schedule: '0 9 * * 1' };
    const { body } = await service.api.post('/Schedules').set(PARTNER).send(schedule).expect(201);
    for (const table of ['instances', 'released_instances'])
      await service.database.query(
        `INSERT INTO task.${table} (schedule_id, facility_id, name, due_at, status)
         VALUES ($1, 77, 'Old', now() - interval '200 days', 'Cancelled')`,
        [body.scheduleId],
      );
    await service.database.query(
      `INSERT INTO task.inbox (queue, message_id, message_name, applied_at) VALUES ('q', 'old', 'm', now() - interval '31 days')`,
    );
    const left = (): Promise<object[]> =>
      service.database
        .query(`SELECT (SELECT count(*)::int FROM task.instances WHERE name = 'Old') AS instances,
        (SELECT count(*)::int FROM task.inbox WHERE message_id = 'old') AS messages`);
    const run = async (): Promise<void> => {
      for (const job of JOBS) await service.app.get<{ run(): Promise<unknown> }>(job).run();
      await service.app.get(PurgeInboxJob).run();
    };
    const clock = service.app.get<Clock>(CLOCK);
    const now = clock.now.bind(clock);
    const moved = jest.spyOn(clock, 'now').mockImplementation(() => new Date(now().getTime() + differenceMs));
    try {
      await run();
    } finally {
      moved.mockRestore();
    }
    expect(await left()).toEqual([{ instances: 2, messages: 1 }]);
    expect(await service.app.get(Metrics).registry.metrics()).toMatch(
      /^task_purges_put_off_total\{?.*\}? [1-9]/m,
    );
    await eventually(async () => {
      await run();
      expect(await left()).toEqual([{ instances: 0, messages: 0 }]);
    });
  });
});
