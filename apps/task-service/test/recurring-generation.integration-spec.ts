import { randomUUID } from 'node:crypto';
import {
  BusinessUnitChangeV1,
  ScheduleCreatedNotification,
  ScheduleRecurringTaskInstanceGenerationRequest,
  ScheduledMessageEvent,
  TaskInstanceGenerationRequested,
  UnscheduleRecurringTaskInstanceGenerationRequest,
} from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { eventually } from '@platform/testing';
import { CUSTOMER, PARTNER, bearer, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const HOUR_MS = 3_600_000;

describe('recurring generation', () => {
  let service: TaskFixture;
  let main: PlainBus;
  let scheduling: PlainBus;

  const triggers = async (facilityId: number) => {
    const { body } = await service.api.get('/Triggers').query({ facilityId }).set(PARTNER).expect(200);
    return body.triggers;
  };
  const change = (overrides: Partial<BusinessUnitChangeV1>): BusinessUnitChangeV1 => ({
    eventId: randomUUID(),
    occurredAtUtc: new Date().toISOString(),
    businessUnitId: 77,
    facilityIds: [],
    changeType: 'Activated',
    ...overrides,
  });
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
    await service.watch(ScheduledMessageEvent);
    [main, scheduling] = await Promise.all([service.connect('main'), service.connect('scheduling')]);
  });
  afterAll(() => service.close());

  describe('after a business-unit change', () => {
    it('is scheduled for every facility on activation, and announced', async () => {
      await main.publish(
        BusinessUnitChangeV1,
        change({ facilityIds: [601, 602, 601], timeZone: 'Europe/Berlin' }),
      );
      const [trigger] = await eventually(async () => {
        expect(await triggers(602)).toHaveLength(1);
        return triggers(601);
      });
      expect(trigger).toEqual({
        triggerName: 'facility-601',
        triggerGroup: 'TaskInstanceGeneration',
        jobName: 'GenerateTaskInstancesSchedule',
        facilityId: 601,
        schedule: '0 2 * * *',
        timeZone: 'Europe/Berlin',
        state: 'WAITING',
        nextFireAtUtc: expect.any(String),
        previousFireAtUtc: null,
      });
      const announced = await service.received(ScheduledMessageEvent, 2);
      expect(announced.map(({ message }) => message.description).sort()).toEqual([
        'GenerateTaskInstancesSchedule of facility 601',
        'GenerateTaskInstancesSchedule of facility 602',
      ]);
      expect(announced[0]?.message).toMatchObject({
        messageName: 'ITaskInstanceGenerationRequested',
        schedule: '0 2 * * *',
      });
    });

    it('is removed on deactivation', async () => {
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 78, facilityIds: [611] }));
      await eventually(async () => expect(await triggers(611)).toHaveLength(1));
      await main.publish(
        BusinessUnitChangeV1,
        change({ businessUnitId: 78, facilityIds: [611], changeType: 'Deactivated' }),
      );
      await eventually(async () => expect(await triggers(611)).toEqual([]));
    });

    it('ignores a change older than the last applied, but not one behind a mere update', async () => {
      const at = (minutes: number): string => new Date(Date.UTC(2026, 5, 1, 12, minutes)).toISOString();
      const unit = { businessUnitId: 79, facilityIds: [621] };
      // An update is newer than the activation that its retries delayed.
      await main.publish(
        BusinessUnitChangeV1,
        change({ ...unit, changeType: 'Updated', occurredAtUtc: at(9) }),
      );
      await main.publish(BusinessUnitChangeV1, change({ ...unit, occurredAtUtc: at(5) }));
      await eventually(async () => expect(await triggers(621)).toHaveLength(1));
      await main.publish(
        BusinessUnitChangeV1,
        change({ ...unit, changeType: 'Deactivated', occurredAtUtc: at(4) }),
      );
      // A later message through the same queue shows that the stale one was consumed.
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 80, facilityIds: [622] }));
      await eventually(async () => expect(await triggers(622)).toHaveLength(1));
      const [applied] = await service.database.query(
        'SELECT * FROM task.business_unit_changes WHERE business_unit_id = 79',
      );
      expect(applied).toMatchObject({ change_type: 'Activated', occurred_at: new Date(at(5)) });
      expect(await triggers(621)).toHaveLength(1);
    });

    it('keeps the cron that a facility was given by command', async () => {
      await scheduling.request(
        ScheduleRecurringTaskInstanceGenerationRequest,
        { facilityId: 631, schedule: '15 4 * * *' },
        { timeoutMs: 5_000 },
      );
      await main.publish(
        BusinessUnitChangeV1,
        change({ businessUnitId: 81, facilityIds: [631], timeZone: 'Europe/Paris' }),
      );
      await eventually(async () =>
        expect(await triggers(631)).toMatchObject([{ schedule: '15 4 * * *', timeZone: 'Europe/Paris' }]),
      );
    });

    it('waits for a retry in the broker when it fails, with the waits of the specification', async () => {
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 82, facilityIds: [641, -1] }));
      const { management } = service.brokers.main;
      const waiting = await eventually(async () => {
        const queues = (await management.queues()).filter((name) =>
          name.startsWith('task-service.business-unit-change'),
        );
        expect(queues.length).toBeGreaterThanOrEqual(7);
        return queues;
      });
      for (const delayMs of [5_000, 30_000, 60_000, 180_000, 300_000])
        expect(waiting.some((name) => name.includes(String(delayMs)))).toBe(true);
      // The failed attempt left nothing behind.
      expect(await triggers(641)).toEqual([]);
      expect(
        await service.database.query('SELECT 1 FROM task.business_unit_changes WHERE business_unit_id = 82'),
      ).toEqual([]);
    });
  });

  describe('by request over the bus', () => {
    const schedule = (message: ScheduleRecurringTaskInstanceGenerationRequest) =>
      scheduling.request(ScheduleRecurringTaskInstanceGenerationRequest, message, { timeoutMs: 5_000 });

    it('answers Succeeded with the trigger, and whether one was replaced', async () => {
      const first = await schedule({ facilityId: 701, schedule: '30 5 * * *', timeZone: 'UTC' });
      expect(first).toEqual({
        succeeded: {
          facilityId: 701,
          scheduleName: 'facility-701',
          scheduleGroup: 'TaskInstanceGeneration',
          schedule: '30 5 * * *',
          timeZone: 'UTC',
          nextFireTimeUtc: expect.stringMatching(/T05:30:00.000Z$/),
          replaced: false,
        },
      });
      expect(await schedule({ facilityId: 701 })).toMatchObject({
        succeeded: { schedule: '30 5 * * *', replaced: true },
      });
      expect(await schedule({ facilityId: 701, schedule: '0 6 * * *' })).toMatchObject({
        succeeded: {
          schedule: '0 6 * * *',
          replaced: true,
          nextFireTimeUtc: expect.stringMatching(/T06:00:00.000Z$/),
        },
      });
      const announced = await eventually(async () => {
        const all = await service.received(ScheduledMessageEvent, 1);
        const ours = all.filter(({ message }) => message.description.endsWith(' 701'));
        expect(ours).toHaveLength(2);
        return ours;
      });
      // Announced when created and when the cron changed, in that order; not when nothing changed.
      expect(announced.map(({ message }) => message.schedule)).toEqual(['30 5 * * *', '0 6 * * *']);
    });

    it.each([
      [{ facilityId: 702, schedule: '@daily' }, 'InvalidSchedule'],
      [{ facilityId: 702, timeZone: 'Mars/Olympus' }, 'InvalidTimeZone'],
      [{ facilityId: 0 }, 'InvalidFacility'],
    ])('answers Failed to %j with code %s', async (message, code) => {
      expect(await schedule(message)).toEqual({
        failed: { facilityId: message.facilityId, code, reason: expect.any(String) },
      });
      expect(await triggers(702)).toEqual([]);
    });

    it('is removed, and answers whether there was any', async () => {
      const unschedule = () =>
        scheduling.request(
          UnscheduleRecurringTaskInstanceGenerationRequest,
          { facilityId: 703 },
          { timeoutMs: 5_000 },
        );
      await schedule({ facilityId: 703 });
      expect(await unschedule()).toEqual({ succeeded: { facilityId: 703, removed: true } });
      expect(await unschedule()).toEqual({ succeeded: { facilityId: 703, removed: false } });
      expect(await triggers(703)).toEqual([]);
    });
  });

  describe('by command', () => {
    const command = (name: string, body: object, token = PARTNER) =>
      service.api.post(`/commands/${name}RecurringTaskInstanceGeneration`).set(token).send(body);

    it('answers 200 with the answer of the bus', async () => {
      const answer = await command('schedule', {
        facilityId: 711,
        schedule: '0 3 * * *',
        timeZone: 'UTC',
      }).expect(200);
      expect(answer.body).toEqual({
        result: 'Succeeded',
        facilityId: 711,
        scheduleName: 'facility-711',
        scheduleGroup: 'TaskInstanceGeneration',
        schedule: '0 3 * * *',
        timeZone: 'UTC',
        nextFireTimeUtc: expect.any(String),
        replaced: false,
      });
      const removed = await command('unschedule', { facilityId: 711 }).expect(200);
      expect(removed.body).toEqual({ result: 'Succeeded', facilityId: 711, removed: true });
    });

    it('answers 422 with result, code and reason when the answer is Failed', async () => {
      const answer = await command('schedule', { facilityId: 712, schedule: '99 * * * *' }).expect(422);
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(answer.body).toMatchObject({
        status: 422,
        result: 'Failed',
        code: 'InvalidSchedule',
        reason: expect.stringContaining('minute'),
        facilityId: 712,
      });
    });

    it('is for InternalPartner, with a valid body', async () => {
      await command('schedule', { facilityId: 501 }, CUSTOMER).expect(403);
      await command('unschedule', { facilityId: 501 }, bearer({ personas: 30 })).expect(403);
      await command('schedule', {}).expect(400);
      await command('schedule', { facilityId: 501, cron: '0 3 * * *' }).expect(400);
      await service.api.post('/commands/scheduleRecurringTaskInstanceGeneration').send({}).expect(401);
    });
  });

  describe('of instances', () => {
    it('happens for a schedule when the scheduling service tells of it', async () => {
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
      expect(generated.every(({ due_at: dueAt }) => dueAt.toISOString().endsWith('T09:00:00.000Z'))).toBe(
        true,
      );
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
      // As if it had never been noted how far generation went: the unique key alone must do.
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

    it('starts no earlier than the start date', async () => {
      const startDate = new Date(Date.now() + 10 * 24 * HOUR_MS).toISOString().slice(0, 10);
      const body = { facilityId: 803, name: 'Round', schedule: '0 0 * * *', startDate };
      const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
      const { scheduleId, name, schedule, timeZone, createdAtUtc, createdBy } = created.body;
      await scheduling.publish(ScheduleCreatedNotification, {
        ...{ scheduleId, facilityId: 803, name, schedule, timeZone, createdAtUtc, createdBy },
      });
      const rows = await eventually(async () => {
        const found = await instances(803);
        expect(found.length).toBeGreaterThan(0);
        return found;
      });
      expect(rows[0]?.due_at.toISOString()).toBe(`${startDate}T00:00:00.000Z`);
    });

    it('comes from the scheduler: a due trigger fires, its message generates', async () => {
      await createSchedule(804);
      await scheduling.request(
        ScheduleRecurringTaskInstanceGenerationRequest,
        { facilityId: 804 },
        { timeoutMs: 5_000 },
      );
      await service.database.query(
        `UPDATE task.triggers SET next_fire_at = date_trunc('minute', now()) WHERE facility_id = 804`,
      );
      // Any change of a trigger wakes the scheduler; otherwise it looks within 15 s.
      await scheduling.request(
        ScheduleRecurringTaskInstanceGenerationRequest,
        { facilityId: 805 },
        { timeoutMs: 5_000 },
      );
      await eventually(async () => expect(await instances(804)).toHaveLength(30));
      const [trigger] = await triggers(804);
      expect(Date.parse(trigger.nextFireAtUtc)).toBeGreaterThan(Date.now());
      expect(trigger.previousFireAtUtc).not.toBeNull();
      const fires = await service.database.query(
        'SELECT misfired FROM task.trigger_fires WHERE facility_id = 804',
      );
      expect(fires).toEqual([{ misfired: false }]);
    });
  });

  it('lists triggers within the facilities of the caller', async () => {
    const request = (facilityId: number) =>
      scheduling.request(
        ScheduleRecurringTaskInstanceGenerationRequest,
        { facilityId },
        { timeoutMs: 5_000 },
      );
    await Promise.all([501, 502, 503].map(request));
    const mine = await service.api.get('/Triggers').set(CUSTOMER).expect(200);
    expect(mine.body.triggers.map((trigger: { facilityId: number }) => trigger.facilityId)).toEqual([
      501, 502,
    ]);
    await service.api.get('/Triggers').query({ facilityId: 503 }).set(CUSTOMER).expect(403);
    const first = await service.api.get('/Triggers').query({ pageSize: 2 }).set(CUSTOMER).expect(200);
    expect(first.body.nextPageKey).toBeNull();
    const all = await service.api.get('/Triggers').query({ pageSize: 1 }).set(PARTNER).expect(200);
    expect(all.body.nextPageKey).not.toBeNull();
  });
});
