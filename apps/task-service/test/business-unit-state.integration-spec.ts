import { randomUUID } from 'node:crypto';
import { BusinessUnitChangeV1, ScheduleRecurringTaskInstanceGenerationRequest } from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

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
  const deactivate = (businessUnitId: number, facilityIds: number[]) =>
    main.publish(BusinessUnitChangeV1, change({ businessUnitId, facilityIds, changeType: 'Deactivated' }));
  let marker = 9_000;
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

  beforeAll(async () => {
    service = await startTaskService();
    [main, scheduling] = await Promise.all([service.connect('main'), service.connect('scheduling')]);
  });
  afterAll(() => service.close());

  describe('of a unit as a whole', () => {
    const at = (minutes: number): string => new Date(Date.UTC(2026, 5, 2, 12, minutes)).toISOString();
    const send = (
      businessUnitId: number,
      changeType: BusinessUnitChangeV1['changeType'],
      facilityIds: number[],
      minutes: number,
    ) =>
      main.publish(
        BusinessUnitChangeV1,
        change({ businessUnitId, changeType, facilityIds, occurredAtUtc: at(minutes) }),
      );
    /** Waits until the messages are consumed and exactly the expected facilities have a trigger. */
    const expectHeld = async (facilityIds: number[], expected: number[]): Promise<void> => {
      await consumed();
      await eventually(async () => expect(await held(facilityIds)).toEqual(expected));
    };
    const held = async (facilityIds: number[]): Promise<number[]> => {
      const rows = await service.database.query<{ facility_id: string }>(
        'SELECT facility_id FROM task.triggers WHERE facility_id = ANY ($1) ORDER BY 1',
        [facilityIds],
      );
      return rows.map(({ facility_id }) => Number(facility_id));
    };

    it('ends for facilities that an update omits, and starts for those that it adds', async () => {
      await send(301, 'Activated', [3_011, 3_012], 1);
      await send(301, 'Updated', [3_012, 3_013], 2);
      await expectHeld([3_011, 3_012, 3_013], [3_012, 3_013]);
      await send(301, 'Updated', [], 3);
      await expectHeld([3_011, 3_012, 3_013], []);
      await send(301, 'Updated', [3_014], 4);
      await expectHeld([3_014], [3_014]);
    });

    it.each([[[3_021]], [[]]])(
      'ends for all of its facilities when a deactivation lists %j',
      async (listed) => {
        const [unit, facilities] = [310 + listed.length, [3_021, 3_022]];
        await send(unit, 'Activated', facilities, 1);
        await expectHeld(facilities, facilities);
        await send(unit, 'Deactivated', listed, 2);
        await expectHeld(facilities, []);
        // An update does not activate a unit.
        await send(unit, 'Updated', facilities, 3);
        await expectHeld(facilities, []);
      },
    );

    it('is not started by changes older than a deactivation or an update, even for new facilities', async () => {
      await send(320, 'Deactivated', [], 9);
      await send(320, 'Activated', [3_031], 5);
      await send(320, 'Updated', [3_032], 6);
      await send(321, 'Activated', [3_033], 1);
      await send(321, 'Updated', [3_033], 9);
      await send(321, 'Activated', [3_033, 3_034], 5);
      await send(321, 'Updated', [3_035], 6);
      await expectHeld([3_031, 3_032, 3_033, 3_034, 3_035], [3_033]);
    });

    it('survives a deactivation older than its activation', async () => {
      await send(322, 'Activated', [3_041], 5);
      await send(322, 'Deactivated', [], 3);
      await send(322, 'Updated', [3_041, 3_042], 6);
      await expectHeld([3_041, 3_042], [3_041, 3_042]);
    });

    it('applies the list of a newer update that arrives before the activation', async () => {
      await send(323, 'Updated', [3_051, 3_052], 9);
      await send(323, 'Activated', [3_051, 3_053], 5);
      await expectHeld([3_051, 3_052, 3_053], [3_051, 3_052]);
    });

    it('respects deactivations by the previous release', async () => {
      await send(324, 'Activated', [3_061], 1);
      await consumed();
      await service.database.query(
        `UPDATE task.business_unit_facilities SET is_active = false, occurred_at = $1 WHERE business_unit_id = 324`,
        [at(2)],
      );
      await send(324, 'Updated', [3_061, 3_062], 3);
      await expectHeld([3_062], []);
    });

    it('continues for a facility that another unit still has', async () => {
      await send(325, 'Activated', [3_071, 3_072], 1);
      await send(326, 'Activated', [3_071], 1);
      await send(325, 'Updated', [], 2);
      await expectHeld([3_071, 3_072], [3_071]);
    });

    it.each(['unknown', 'inactive'])(
      'keeps a trigger that a command created if its unit and facility are an %s pair',
      async (pair) => {
        const [unit, facilityId] = pair === 'unknown' ? [328, 3_081] : [329, 3_091];
        if (pair === 'inactive') await send(unit, 'Deactivated', [facilityId], 1);
        await consumed();
        const settings = { facilityId, schedule: '15 4 * * *' };
        await scheduling.request(ScheduleRecurringTaskInstanceGenerationRequest, settings, {
          timeoutMs: 5_000,
        });
        await send(unit, 'Deactivated', [facilityId], 2);
        await expectHeld([facilityId], [facilityId]);
      },
    );

    it('ends for more facilities than one message may list', async () => {
      const many = (from: number) => Array.from({ length: 6_000 }, (_, index) => from + index);
      await send(327, 'Activated', many(100_000), 1);
      await send(327, 'Activated', many(106_000), 2);
      await expectHeld([100_000, 111_999], [100_000, 111_999]);
      await send(327, 'Deactivated', [], 3);
      const left = () =>
        service.database.query('SELECT 1 FROM task.triggers WHERE facility_id BETWEEN 100000 AND 111999');
      await eventually(async () => expect((await left()).length).toBe(0));
    });
  });

  describe('of a facility that is activated again', () => {
    const pause = (facilityId: number) =>
      service.api
        .post(`/Triggers/${String(facilityId)}/commands/pause`)
        .set(PARTNER)
        .expect(200);

    it('resumes with its settings and its pause', async () => {
      const settings = { facilityId: 3_101, schedule: '15 4 * * *', timeZone: 'Europe/Berlin' };
      await scheduling.request(ScheduleRecurringTaskInstanceGenerationRequest, settings, {
        timeoutMs: 5_000,
      });
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 330, facilityIds: [3_101] }));
      await consumed();
      await pause(3_101);
      await deactivate(330, [3_101]);
      await consumed();
      expect(await triggers(3_101)).toEqual([]);
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 330, facilityIds: [3_101] }));
      await consumed();
      expect(await triggers(3_101)).toMatchObject([{ ...settings, state: 'PAUSED', jitterSeconds: 0 }]);
    });

    it('starts with defaults if a command removed it', async () => {
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 331, facilityIds: [3_102] }));
      await consumed();
      await pause(3_102);
      await deactivate(331, [3_102]);
      await consumed();
      await service.api
        .post('/commands/unscheduleRecurringTaskInstanceGeneration')
        .set(PARTNER)
        .send({ facilityId: 3_102 })
        .expect(200);
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 331, facilityIds: [3_102] }));
      await consumed();
      expect(await triggers(3_102)).toMatchObject([{ state: 'WAITING' }]);
    });

    it('does not catch up on instances that were due during the inactivity', async () => {
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 332, facilityIds: [3_103] }));
      await consumed();
      const { body } = await service.api
        .post('/Schedules')
        .set(PARTNER)
        .send({ facilityId: 3_103, name: 'Inspect', schedule: '0 9 * * *' })
        .expect(201);
      await deactivate(332, [3_103]);
      await consumed();
      const resetGeneration = async (): Promise<void> => {
        await service.database.query('DELETE FROM task.instances WHERE schedule_id = $1', [body.scheduleId]);
        await service.database.query(
          `UPDATE task.schedules SET created_at = now() - interval '70 days', generated_until = now() - interval '60 days'
           WHERE schedule_id = $1`,
          [body.scheduleId],
        );
      };
      const instances = () =>
        service.database.query<{ overdue: number; ahead: number }>(
          `SELECT count(*) FILTER (WHERE due_at < now())::int AS overdue, count(*) FILTER (WHERE due_at > now())::int AS ahead
           FROM task.instances WHERE schedule_id = $1`,
          [body.scheduleId],
        );
      const generated = () =>
        eventually(async () => {
          const [counts] = await instances();
          expect(counts?.ahead).toBeGreaterThan(28);
          return counts;
        });
      // A request while the facility is inactive generates future instances only.
      await resetGeneration();
      await service.api
        .post('/commands/generateTaskInstances')
        .set(PARTNER)
        .send({ facilityId: 3_103 })
        .expect(202);
      expect(await generated()).toMatchObject({ overdue: 0 });
      await resetGeneration();
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 332, facilityIds: [3_103] }));
      expect(await generated()).toMatchObject({ overdue: 0 });
      // A clock that was ahead at the activation must not prevent future instances.
      await resetGeneration();
      await service.database.query(
        `UPDATE task.facility_activity SET active_since = now() + interval '10 days' WHERE facility_id = 3103`,
      );
      await service.api
        .post('/commands/generateTaskInstances')
        .set(PARTNER)
        .send({ facilityId: 3_103 })
        .expect(202);
      expect(await generated()).toMatchObject({ overdue: 0 });
    });

    it('is activated together with facilities whose settings cannot be evaluated', async () => {
      const facilityIds = [3_111, 3_112, 3_113];
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 333, facilityIds }));
      await consumed();
      await service.database.query(
        `UPDATE task.triggers SET time_zone = 'Mars/X' WHERE facility_id < 3113 AND facility_id > 3110`,
      );
      await deactivate(333, [3_112, 3_113]);
      await consumed();
      await service.database.query(
        `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
         VALUES (3111, 'facility-3111', 'g', 'j', '0 2 * * *', 'Mars/X', 'ERROR', now())`,
      );
      await main.publish(BusinessUnitChangeV1, change({ businessUnitId: 333, facilityIds }));
      await consumed();
      const states = await Promise.all(facilityIds.map(triggers));
      expect(states.flat().map(({ state }: { state: string }) => state)).toEqual([
        'ERROR',
        'ERROR',
        'WAITING',
      ]);
      const zone = { facilityId: 3_112, timeZone: 'UTC' };
      await scheduling.request(ScheduleRecurringTaskInstanceGenerationRequest, zone, { timeoutMs: 5_000 });
      expect(await triggers(3_112)).toMatchObject([{ state: 'WAITING' }]);
    });
  });
});
