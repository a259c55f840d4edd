import { randomUUID } from 'node:crypto';
import { ScheduleRecurringTaskInstanceGenerationRequest } from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { Metrics } from '@platform/service-defaults';
import { GenerationPositionsJob } from '../src/reconciliation/generation-positions.job';
import { GenerationPositions } from '../src/reconciliation/generation-positions.service';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** Covers positions that a clock set ahead has moved into the future, and facilities without generation. */
describe('reconciliation of positions', () => {
  let service: TaskFixture;
  let scheduling: PlainBus;

  const trigger = (facilityId: number, schedule: string) =>
    scheduling.request(
      ScheduleRecurringTaskInstanceGenerationRequest,
      { facilityId, schedule },
      { timeoutMs: 5_000 },
    );
  const createSchedule = async (facilityId: number, overrides: object = {}): Promise<string> => {
    const body = { facilityId, name: 'Inspect', schedule: '0 9 * * *', ...overrides };
    const response = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    return response.body.scheduleId;
  };
  const reconcile = async (applies: boolean, ...facilities: number[]) => {
    const found = await service.app.get(GenerationPositions).reconcile({ applies, graceMinutes: 0 });
    return found
      .filter(({ facilityId }) => facilities.includes(facilityId))
      .map(({ problem, facilityId }) => `${String(facilityId)}: ${problem}`);
  };
  const nextFires = (...facilities: number[]) =>
    service.database.query<{ next: Date; previous: Date | null }>(
      `SELECT next_fire_at AS next, previous_fire_at AS previous FROM task.triggers WHERE facility_id = ANY ($1) ORDER BY facility_id`,
      [facilities],
    );

  beforeAll(async () => {
    service = await startTaskService();
    scheduling = await service.connect('scheduling');
  });
  afterAll(() => service.close());

  it('finds triggers whose next fire is a year late, and corrects them unless in a dry run', async () => {
    // The last trigger really fires that rarely.
    await trigger(801, '0 2 * * *');
    await trigger(802, '0 2 * * *');
    await trigger(803, '0 0 29 2 *');
    const before = await nextFires(801, 802, 803);
    await service.database.query(
      `UPDATE task.triggers SET next_fire_at = next_fire_at + interval '1 year', previous_fire_at = now() + interval '1 year',
         state = CASE facility_id WHEN 802 THEN 'PAUSED' ELSE 'WAITING' END
       WHERE facility_id IN (801, 802)`,
    );
    const findings = [801, 802].map((id) => `${String(id)}: next fire beyond the next occurrence`);
    expect(await reconcile(false, 801, 802, 803)).toEqual(findings);
    expect(await nextFires(801, 802, 803)).not.toEqual(before);
    expect(await reconcile(true, 801, 802, 803)).toEqual(findings);
    expect(await nextFires(801, 802, 803)).toEqual(before);
    expect(await reconcile(true, 801, 802, 803)).toEqual([]);
  });

  it('finds schedules whose generated_until is beyond their instances, and resets it', async () => {
    const generated = async (facilityId: number, scheduleId: string): Promise<void> => {
      await service.database.query(
        `INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
         SELECT $1, $2, 'Inspect', due FROM generate_series(date_trunc('day', now(), 'UTC') + interval '9 hours', now() + interval '30 days', interval '1 day') AS due
         ON CONFLICT DO NOTHING`,
        [scheduleId, facilityId],
      );
      await service.database.query(
        `UPDATE task.schedules SET generated_until = now() + interval '300 days' WHERE schedule_id = $1`,
        [scheduleId],
      );
    };
    const calendarId = randomUUID();
    const calendar = { name: 'Holidays', excludedDates: ['2199-12-31'] };
    await service.api
      .put(`/Calendars/${calendarId}`)
      .set(PARTNER)
      .send(calendar)
      .expect((response) => {
        expect(response.status).toBeLessThan(300);
      });
    const ids = new Map<number, string>();
    for (const facilityId of [811, 812, 813, 814]) {
      await trigger(facilityId, facilityId === 813 ? '0 2 1 1 *' : '0 2 * * *');
      const scheduleId = await createSchedule(facilityId, { calendarId });
      await generated(facilityId, scheduleId);
      ids.set(facilityId, scheduleId);
    }
    // 812 lacks its last ten days. So does 813, but its trigger fires only once a year.
    for (const facilityId of [812, 813])
      await service.database.query(
        `DELETE FROM task.instances WHERE schedule_id = $1 AND due_at > now() + interval '20 days'`,
        [ids.get(facilityId)],
      );
    // The last instance of 814 is released.
    await service.database.query(
      `WITH released AS (
         DELETE FROM ONLY task.instances
         WHERE schedule_id = $1 AND due_at = (SELECT max(due_at) FROM ONLY task.instances WHERE schedule_id = $1)
         RETURNING task_instance_id, schedule_id, facility_id, name, due_at, created_at)
       INSERT INTO task.released_instances (task_instance_id, schedule_id, facility_id, name, due_at, created_at, status, cancelled_at, cancellation_cause)
       SELECT released.*, 'Cancelled', now(), 'Update' FROM released`,
      [ids.get(814)],
    );
    const gaps = ['812: generated beyond its instances', '814: generated beyond its instances'];
    expect((await reconcile(false, 811, 812, 813, 814)).toSorted()).toEqual(gaps);
    expect((await reconcile(true, 811, 812, 813, 814)).toSorted()).toEqual(gaps);
    expect(await reconcile(true, 811, 812, 813, 814)).toEqual([]);
    const [schedule] = await service.database.query<{ reset: boolean }>(
      'SELECT generated_until <= now() AS reset FROM task.schedules WHERE schedule_id = $1',
      [ids.get(812)],
    );
    expect(schedule).toEqual({ reset: true });
  });

  it('finds and counts facilities with schedules but no trigger, except inactive ones', async () => {
    for (const facilityId of [821, 822, 823, 824]) await createSchedule(facilityId);
    await createSchedule(821, { name: 'Another' });
    await trigger(822, '0 2 * * *');
    await service.database.query(
      `INSERT INTO task.facility_activity (facility_id, inactive_since) VALUES (823, now())`,
    );
    await service.database.query(`UPDATE task.schedules SET end_date = '2020-01-01' WHERE facility_id = 824`);
    expect(await reconcile(true, 821, 822, 823, 824)).toEqual(['821: facility without trigger']);
    await service.database.query(
      `UPDATE task.schedules SET created_at = now() - interval '2 hours' WHERE facility_id = 821`,
    );
    await service.app.get(GenerationPositionsJob).run();
    const text = await service.app.get(Metrics).registry.metrics();
    expect(text).toMatch(/^task_facilities_without_trigger\{?.*\}? 1$/m);
  });
});
