import { randomUUID } from 'node:crypto';
import {
  BusinessUnitChangeV1,
  ScheduleRecurringTaskInstanceGenerationRequest,
  ScheduledMessageEvent,
} from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { eventually } from '@platform/testing';
import { Client } from 'pg';
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
      jitterSeconds: 545,
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

  it('ignores a change older than the last applied one, unless that was only an update', async () => {
    const at = (minutes: number): string => new Date(Date.UTC(2026, 5, 1, 12, minutes)).toISOString();
    const unit = { businessUnitId: 79, facilityIds: [621] };
    // The update is newer than the activation, which its retries have delayed.
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
    // Once a later message in the same queue is processed, the stale one was consumed.
    await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 80, facilityIds: [622] }));
    await eventually(async () => expect(await triggers(622)).toHaveLength(1));
    const applied = await service.database.query(
      `SELECT is_active, occurred_at, activations FROM task.business_unit_facilities JOIN task.business_units USING (business_unit_id)
       WHERE business_unit_id = 79`,
    );
    // The pair has the state of the update, and the unit is active since its activation.
    expect(applied).toEqual([
      { is_active: true, occurred_at: new Date(at(9)), activations: [new Date(at(5))] },
    ]);
    expect(await triggers(621)).toHaveLength(1);
  });

  const deactivate = (businessUnitId: number, facilityIds: number[], occurredAtUtc?: string) =>
    main.publish(
      BusinessUnitChangeV1,
      change({
        businessUnitId,
        facilityIds,
        changeType: 'Deactivated',
        ...(occurredAtUtc && { occurredAtUtc }),
      }),
    );
  /** Waits until all messages sent so far are consumed, by sending another one through the same queue. */
  const consumed = async (): Promise<void> => {
    const facilityId = (marker += 1);
    await main.publish(
      BusinessUnitChangeV1,
      change({ businessUnitId: facilityId, facilityIds: [facilityId] }),
    );
    await eventually(async () => expect(await triggers(facilityId)).toHaveLength(1));
    await eventually(async () => {
      const { management } = service.brokers.main;
      expect(await management.queue('task-service.business-unit-change')).toMatchObject({ messages: 0 });
    });
  };
  let marker = 9_000;

  it('stays while any business unit keeps the facility active, and ends with the last one', async () => {
    for (const businessUnitId of [90, 91])
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId, facilityIds: [900, 901] }));
    await consumed();
    await deactivate(90, [900]);
    await consumed();
    expect(await triggers(900)).toHaveLength(1);
    expect(await triggers(901)).toHaveLength(1);
    await deactivate(91, [900, 901]);
    await eventually(async () => expect(await triggers(900)).toEqual([]));
    await eventually(async () => expect(await triggers(901)).toEqual([]));
  });

  it('follows the newest change of each unit and facility, in whatever order changes arrive', async () => {
    const at = (minutes: number): string => new Date(Date.UTC(2026, 5, 1, 12, minutes)).toISOString();
    const activate = (facilityIds: number[], minutes: number) =>
      main.publish(
        BusinessUnitChangeV1,
        change({ businessUnitId: 92, facilityIds, occurredAtUtc: at(minutes) }),
      );
    await activate([910], 9);
    // Older, but no newer change of this facility is known.
    await activate([911], 5);
    await consumed();
    await deactivate(92, [910, 911], at(7));
    await eventually(async () => expect(await triggers(911)).toEqual([]));
    expect(await triggers(910)).toHaveLength(1);
  });

  describe('with replicas of version 0.2, which record changes per business unit', () => {
    const at = (minutes: number): string => new Date(Date.UTC(2026, 5, 1, 12, minutes)).toISOString();
    /** Runs the statement with which that version records a change and decides whether it is stale. */
    const isAppliedByPrevious = async (unit: number, changeType: string, occurredAt: string) => {
      const rows = await service.database.query(
        `INSERT INTO task.business_unit_changes AS applied (business_unit_id, event_id, change_type, occurred_at)
         VALUES ($1, gen_random_uuid(), $2, $3)
         ON CONFLICT (business_unit_id) DO UPDATE
           SET event_id = excluded.event_id, change_type = excluded.change_type, occurred_at = excluded.occurred_at,
             applied_at = now()
           WHERE applied.occurred_at <= excluded.occurred_at
         RETURNING 1`,
        [unit, changeType, occurredAt],
      );
      return rows.length > 0;
    };

    it('ignores changes older than those that they applied', async () => {
      expect(await isAppliedByPrevious(93, 'Deactivated', at(7))).toBe(true);
      await main.publish(
        BusinessUnitChangeV1,
        change({ businessUnitId: 93, facilityIds: [912], occurredAtUtc: at(5) }),
      );
      await consumed();
      expect(await triggers(912)).toEqual([]);
    });

    it('makes them ignore changes older than those applied here', async () => {
      await main.publish(
        BusinessUnitChangeV1,
        change({ businessUnitId: 96, facilityIds: [913], occurredAtUtc: at(9) }),
      );
      await consumed();
      expect(await isAppliedByPrevious(96, 'Deactivated', at(8))).toBe(false);
      // Applied changes of one facility must not suppress changes of other facilities.
      await main.publish(
        BusinessUnitChangeV1,
        change({ businessUnitId: 96, facilityIds: [914], occurredAtUtc: at(8) }),
      );
      await eventually(async () => expect(await triggers(914)).toHaveLength(1));
    });

    it('treats facilities that they have deactivated as inactive', async () => {
      for (const businessUnitId of [97, 98])
        await main.publish(
          BusinessUnitChangeV1,
          change({ businessUnitId, facilityIds: [915], occurredAtUtc: at(5) }),
        );
      await consumed();
      expect(await isAppliedByPrevious(97, 'Deactivated', at(6))).toBe(true);
      await deactivate(98, [915], at(7));
      await eventually(async () => expect(await triggers(915)).toEqual([]));
    });
  });

  it('ends with the last of several business units that are deactivated concurrently', async () => {
    const units = Array.from({ length: 12 }, (_, index) => 200 + index);
    const facilityIds = [920, 921, 922];
    for (const businessUnitId of units)
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId, facilityIds }));
    await consumed();
    await Promise.all(
      units.map((unit) =>
        deactivate(
          unit,
          facilityIds.toSorted(() => (unit % 2) - 0.5),
        ),
      ),
    );
    await eventually(async () => {
      for (const facilityId of facilityIds) expect(await triggers(facilityId)).toEqual([]);
    });
  });

  it.each([
    [
      'dated ahead of the database’s clock by more than five minutes',
      { occurredAtUtc: '2099-01-01T00:00:00Z' },
    ],
    [
      'of more than 10,000 facilities',
      { facilityIds: Array.from({ length: 10_001 }, (_, id) => 50_000 + id) },
    ],
  ])('is not affected by a change %s, which goes to the error queue at once', async (_what, overrides) => {
    const body = change({ businessUnitId: 94, facilityIds: [930], ...overrides });
    await service.brokers.main.management.publish('Platform.Contracts:IBusinessUnitChangeV1', {
      body: JSON.stringify(body),
      properties: { content_type: 'application/json' },
    });
    const errored = await eventually(async () => {
      const [message] = await service.brokers.main.management.get(
        'task-service.business-unit-change_error',
        1,
      );
      if (message === undefined) throw new Error('the error queue is empty');
      return message;
    });
    expect(errored.headers).toMatchObject({ 'x-error-reason': 'invalid', 'x-retry-attempts': 0 });
    expect(await triggers(930)).toEqual([]);
    expect(await triggers(50_000)).toEqual([]);
  });

  it('of 1,000 facilities is scheduled, and removed, with at most ten statements', async () => {
    const facilityIds = Array.from({ length: 1_000 }, (_, index) => 20_000 + index);
    const statements = countStatements('business_unit_facilities');
    await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 95, facilityIds }));
    const count = () =>
      service.database.query('SELECT 1 FROM task.triggers WHERE facility_id BETWEEN 20000 AND 20999');
    await eventually(async () => expect(await count()).toHaveLength(1_000));
    await deactivate(95, facilityIds);
    await eventually(async () => expect(await count()).toEqual([]));
    const counts = await eventually(() => {
      expect(statements.ended()).toHaveLength(2);
      return statements.ended();
    });
    for (const used of counts) expect(used).toBeLessThanOrEqual(10);
    statements.restore();
  });

  it('keeps the cron expression that a command has set for a facility', async () => {
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

  it('waits in the broker for its retries, with the delays of the specification', async () => {
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
    // The failed attempt was rolled back.
    expect(await triggers(641)).toEqual([]);
    expect(
      await service.database.query('SELECT 1 FROM task.business_unit_facilities WHERE business_unit_id = 82'),
    ).toEqual([]);
  });
});

/** Counts the statements of each completed transaction that has a statement with `table` in its text. */
function countStatements(table: string) {
  const perClient = new Map<unknown, string[]>();
  const ended: number[] = [];
  const prototype = Client.prototype as unknown as { query: (this: void, ...args: unknown[]) => unknown };
  const { query } = prototype;
  const spy = jest.spyOn(prototype, 'query').mockImplementation(function (this: unknown, ...args) {
    const first = args[0] as string | { text: string };
    const text = typeof first === 'string' ? first : first.text;
    const seen = perClient.get(this) ?? [];
    seen.push(text);
    perClient.set(this, seen);
    if (/^(BEGIN|COMMIT|ROLLBACK|START TRANSACTION)/i.test(text)) {
      perClient.set(this, [text]);
      if (seen.some((statement) => statement.includes(table))) ended.push(seen.length);
    }
    return Reflect.apply(query, this, args);
  });
  return { ended: () => ended, restore: () => spy.mockRestore() };
}
