import {
  ScheduleCreatedNotification,
  ScheduleRecurringTaskInstanceGenerationRequest,
  TaskInstanceGenerationRequested,
} from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const HOUR_MS = 3_600_000;

describe('generation of instances', () => {
  let service: TaskFixture;
  let scheduling: PlainBus;

  const triggers = async (facilityId: number) => {
    const { body } = await service.api.get('/Triggers').query({ facilityId }).set(PARTNER).expect(200);
    return body.triggers;
  };
  const instances = (facilityId: number) =>
    service.database.query<{ due_at: Date; schedule_id: string }>(
      'SELECT due_at, schedule_id FROM task.instances WHERE facility_id = $1 ORDER BY due_at',
      [facilityId],
    );
  const createSchedule = async (facilityId: number, schedule = '0 9 * * *') => {
    const body = { facilityId, name: 'Round', schedule };
    const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    return created.body;
  };

  beforeAll(async () => {
    service = await startTaskService();
    scheduling = await service.connect('scheduling');
  });
  afterAll(() => service.close());

  it('happens for a schedule when the scheduling service announces it', async () => {
    const { scheduleId, facilityId, name, schedule, timeZone, createdAtUtc, createdBy } =
      await createSchedule(801);
    const other = await createSchedule(801, '0 10 * * *');
    const event = { scheduleId, facilityId, name, schedule, timeZone, createdAtUtc, createdBy };
    await scheduling.publish(ScheduleCreatedNotification, event);
    const generated = await eventually(async () => {
      const rows = await instances(801);
      expect(rows).toHaveLength(30);
      return rows;
    });
    expect(generated.every(({ due_at: dueAt }) => dueAt.toISOString().endsWith('T09:00:00.000Z'))).toBe(true);
    expect(generated.some((row) => row.schedule_id === other.scheduleId)).toBe(false);
  });

  it('happens for all Active schedules of a facility when its trigger fires, and is idempotent', async () => {
    await createSchedule(802);
    await createSchedule(802, '0 10 * * *');
    const paused = await createSchedule(802, '0 11 * * *');
    await service.database.query(`UPDATE task.schedules SET status = 'Paused' WHERE schedule_id = $1`, [
      paused.scheduleId,
    ]);
    const request = (): TaskInstanceGenerationRequested => ({
      facilityId: 802,
      scheduledFireTimeUtc: new Date().toISOString(),
      fireTimeUtc: new Date().toISOString(),
      misfired: false,
      missedCount: 0,
    });
    await scheduling.publish(TaskInstanceGenerationRequested, request());
    await eventually(async () => expect(await instances(802)).toHaveLength(60));
    // Resets the progress of generation, so that only the unique key prevents duplicates.
    await service.database.query(
      `UPDATE task.schedules SET generated_until = now() - interval '1 hour' WHERE facility_id = 802`,
    );
    await Promise.all(
      Array.from({ length: 6 }, () => scheduling.publish(TaskInstanceGenerationRequested, request())),
    );
    await eventually(async () => {
      const done = await service.database.query(
        `SELECT 1 FROM task.inbox WHERE queue = 'task-service.task-instance-generation'`,
      );
      expect(done).toHaveLength(7);
    });
    const rows = await instances(802);
    expect(rows.length).toBeGreaterThanOrEqual(60);
    expect(rows.length).toBeLessThanOrEqual(62);
    const keys = rows.map((row) => `${row.schedule_id} ${row.due_at.toISOString()}`);
    expect(new Set(keys).size).toBe(rows.length);
  });

  /** Generates at once. Returns the days with a due instance, oldest first. */
  const generate = async (facilityId: number) => {
    const generation = service.app.get(InstanceGenerationService);
    await service.app.get(DataSource).transaction((manager) => generation.generate(manager, { facilityId }));
    return (await instances(facilityId)).map(({ due_at: dueAt }) =>
      Math.floor(dueAt.getTime() / (24 * HOUR_MS)),
    );
  };
  const consecutiveDays = (days: readonly number[]) => days.map((_, index) => (days[0] ?? 0) + index);
  const setGeneratedUntil = (facilityId: number, daysAgo: number) =>
    service.database.query(
      `UPDATE task.schedules SET generated_until = now() - make_interval(days => $2) WHERE facility_id = $1`,
      [facilityId, daysAgo],
    );

  it('leaves no gap before now, however long ago the last generation was', async () => {
    await createSchedule(810);
    await setGeneratedUntil(810, 60);
    const days = await generate(810);
    expect(days).toEqual(consecutiveDays(days));
    expect(days).toHaveLength(90);
  });

  it('catches up at most GENERATION_CATCH_UP_DAYS, and counts the skipped instances', async () => {
    await createSchedule(811);
    await setGeneratedUntil(811, 100);
    const skipped = service.app.get(Metrics).registry.getSingleMetric('task_instances_skipped_total');
    const before = (await skipped?.get())?.values[0]?.value ?? 0;
    expect(await generate(811)).toHaveLength(120);
    expect((await skipped?.get())?.values[0]?.value).toBe(before + 10);
  });

  it('reaches to the fire after next of a trigger that fires once a year, as soon as it is created', async () => {
    await createSchedule(812);
    await scheduling.request(
      ScheduleRecurringTaskInstanceGenerationRequest,
      { facilityId: 812, schedule: '0 2 1 1 *' },
      { timeoutMs: 5_000 },
    );
    const days = await eventually(async () => {
      const found = await instances(812);
      expect(found.length).toBeGreaterThan(365);
      return found.map(({ due_at: dueAt }) => Math.floor(dueAt.getTime() / (24 * HOUR_MS)));
    });
    expect(days).toEqual(consecutiveDays(days));
    const lastDay = Date.UTC(new Date().getUTCFullYear() + 2, 0, 1) / (24 * HOUR_MS) - 1;
    expect(days.at(-1)).toBe(lastDay);
  });

  it('is spread by jitter unless a request sets the time', async () => {
    const ask = async (facilityId: number, schedule?: string) => {
      const request = { facilityId, ...(schedule === undefined ? {} : { schedule }) };
      await scheduling.request(ScheduleRecurringTaskInstanceGenerationRequest, request, { timeoutMs: 5_000 });
      const [{ nextFireAtUtc, ...trigger }] = await triggers(facilityId);
      return { ...trigger, secondsPastTwo: ((Date.parse(nextFireAtUtc) / 1_000) % 86_400) - 7_200 };
    };
    const byItself = await ask(813);
    expect(byItself).toMatchObject({ schedule: '0 2 * * *', jitterSeconds: byItself.secondsPastTwo });
    expect(byItself.jitterSeconds).toBeGreaterThan(0);
    expect(await ask(813)).toEqual(byItself);
    expect(await ask(813, '0 2 * * *')).toMatchObject({ jitterSeconds: 0, secondsPastTwo: 0 });
    // A requested time is kept.
    expect(await ask(813)).toMatchObject({ jitterSeconds: 0, secondsPastTwo: 0 });
  });

  it('fires its jitter after each occurrence', async () => {
    await service.database.query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at, jitter_seconds)
       VALUES (814, 'facility-814', 'x', 'x', '*/5 * * * *', 'UTC', date_trunc('hour', now()) + interval '-4 minutes', 60)`,
    );
    await service.api.post('/Triggers/814/commands/resume').set(PARTNER).expect(200);
    const fires = await eventually(async () => {
      const { body } = await service.api.get('/Triggers/814/fires').set(PARTNER).expect(200);
      expect(body.fires.length).toBeGreaterThan(0);
      return body.fires as { scheduledAtUtc: string }[];
    });
    const [trigger] = await triggers(814);
    for (const at of [trigger.nextFireAtUtc, ...fires.map((fire) => fire.scheduledAtUtc)])
      expect((Date.parse(at) / 1_000) % 300).toBe(60);
  });

  it('is counted once it is committed, not when it is rolled back', async () => {
    const { scheduleId } = await createSchedule(808);
    const generation = service.app.get(InstanceGenerationService);
    const dataSource = service.app.get(DataSource);
    const counter = service.app.get(Metrics).registry.getSingleMetric('task_instances_generated_total');
    const counted = async () => (await counter?.get())?.values[0]?.value ?? 0;
    const target = { facilityId: 808, scheduleId };
    const before = await counted();
    const failing = dataSource.transaction(async (manager) => {
      expect(await generation.generate(manager, target)).toBe(30);
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    expect(await counted()).toBe(before);
    await dataSource.transaction((manager) => generation.generate(manager, target));
    expect(await counted()).toBe(before + 30);
  });

  it('starts no earlier than the start date', async () => {
    const startDate = new Date(Date.now() + 10 * 24 * HOUR_MS).toISOString().slice(0, 10);
    const body = { facilityId: 803, name: 'Round', schedule: '0 0 * * *', startDate };
    const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    const { scheduleId, name, schedule, timeZone, createdAtUtc, createdBy } = created.body;
    await scheduling.publish(ScheduleCreatedNotification, {
      scheduleId,
      facilityId: 803,
      name,
      schedule,
      timeZone,
      createdAtUtc,
      createdBy,
    });
    const rows = await eventually(async () => {
      const found = await instances(803);
      expect(found.length).toBeGreaterThan(0);
      return found;
    });
    expect(rows[0]?.due_at.toISOString()).toBe(`${startDate}T00:00:00.000Z`);
  });

  it('happens when the scheduler fires a due trigger', async () => {
    await createSchedule(804);
    await scheduling.request(
      ScheduleRecurringTaskInstanceGenerationRequest,
      { facilityId: 804 },
      { timeoutMs: 5_000 },
    );
    await service.database.query(
      `UPDATE task.triggers SET next_fire_at = date_trunc('minute', now()) WHERE facility_id = 804`,
    );
    // Any change of a trigger wakes the scheduler. Otherwise it polls within 15 s.
    await scheduling.request(
      ScheduleRecurringTaskInstanceGenerationRequest,
      { facilityId: 805 },
      { timeoutMs: 5_000 },
    );
    await eventually(async () => expect(await instances(804)).toHaveLength(30));
    const [trigger] = await triggers(804);
    expect(Date.parse(trigger.nextFireAtUtc)).toBeGreaterThan(Date.now());
    expect(trigger.previousFireAtUtc).not.toBeNull();
    const fires = await service.database.query('SELECT misfired FROM task.fires WHERE facility_id = 804');
    expect(fires).toEqual([{ misfired: false }]);
  });

  it('waits while the trigger is paused, and happens when it is resumed', async () => {
    await createSchedule(806);
    const fires = () => service.database.query('SELECT 1 FROM task.fires WHERE facility_id = 806');
    const command = (name: string, facilityId: number, token = PARTNER) =>
      service.api.post(`/Triggers/${String(facilityId)}/commands/${name}`).set(token);
    await command('pause', 806).expect(404);
    await scheduling.request(
      ScheduleRecurringTaskInstanceGenerationRequest,
      { facilityId: 806 },
      { timeoutMs: 5_000 },
    );
    for (const _ of ['once', 'repeated'])
      expect((await command('pause', 806).expect(200)).body).toMatchObject({
        facilityId: 806,
        state: 'PAUSED',
      });
    await service.database.query(
      `UPDATE task.triggers SET next_fire_at = date_trunc('minute', now()) WHERE facility_id = 806`,
    );
    // A later trigger fires, which shows that the scheduler has polled.
    await scheduling.request(
      ScheduleRecurringTaskInstanceGenerationRequest,
      { facilityId: 807 },
      { timeoutMs: 5_000 },
    );
    await service.database.query(`UPDATE task.triggers SET next_fire_at = now() WHERE facility_id = 807`);
    await command('resume', 807).expect(200);
    await eventually(async () =>
      expect(await service.database.query('SELECT 1 FROM task.fires WHERE facility_id = 807')).toHaveLength(
        1,
      ),
    );
    expect(await fires()).toHaveLength(0);
    await command('resume', 806, CUSTOMER).expect(403);
    expect((await command('resume', 806).expect(200)).body).toMatchObject({ state: 'WAITING' });
    await eventually(async () => expect(await fires()).toHaveLength(1));
  });
});
