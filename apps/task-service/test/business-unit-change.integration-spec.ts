import { randomUUID } from 'node:crypto';
import {
  BusinessUnitChangeV1,
  ScheduleRecurringTaskInstanceGenerationRequest,
  ScheduledMessageEvent,
} from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('recurring generation after a business-unit change', () => {
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

  beforeAll(async () => {
    service = await startTaskService();
    await service.watch(ScheduledMessageEvent);
    [main, scheduling] = await Promise.all([service.connect('main'), service.connect('scheduling')]);
  });
  afterAll(() => service.close());

  it('is scheduled for every facility on activation, and announced', async () => {
    await main.publish(
      BusinessUnitChangeV1,
      change({ facilityIds: [601, 602, 601], timeZone: 'Europe/Berlin' }),
      { conversationId: 'c0ffee00-0000-4000-8000-000000000000' },
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
    expect(announced[0]?.conversationId).toBe('c0ffee00-0000-4000-8000-000000000000');
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
