import { FireRetentionJob } from '../src/scheduler/fire-retention.job';
import { startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('old fires', () => {
  let service: TaskFixture;

  beforeAll(async () => {
    service = await startTaskService({ env: { FIRE_RETENTION_DAYS: '7' } });
  });
  afterAll(() => service.close());

  const addFires = (facilityId: number, count: number, firedAt: string) =>
    service.database.query(
      `INSERT INTO task.trigger_fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
       SELECT $1, ${firedAt} - n * interval '1 minute', ${firedAt}, false, 0, gen_random_uuid() FROM generate_series(1, $2::int) AS n`,
      [facilityId, count],
    );

  it('are forgotten after the configured days, in batches, by the service’s own role; younger ones stay', async () => {
    await addFires(600, 2_500, `now() - interval '8 days'`);
    await addFires(601, 3, `now() - interval '6 days'`);
    expect(await service.app.get(FireRetentionJob).run()).toBe(2_500);
    expect(await service.database.query('SELECT DISTINCT facility_id FROM task.trigger_fires')).toEqual([
      { facility_id: '601' },
    ]);
    expect(await service.app.get(FireRetentionJob).run()).toBe(0);
  });

  it('stay while their trigger stands on them, so that a long pause cannot repeat an occurrence', async () => {
    await service.database.query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
       VALUES (602, 'facility-602', 'g', 'j', '0 2 * * *', 'UTC', 'PAUSED', now() - interval '9 days')`,
    );
    await addFires(602, 1, `now() - interval '8 days'`);
    expect(await service.app.get(FireRetentionJob).run()).toBe(0);
  });
});
