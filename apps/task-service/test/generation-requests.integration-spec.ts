import {
  ScheduleRecurringTaskInstanceGenerationRequest,
  ScheduledMessageEvent,
  UnscheduleRecurringTaskInstanceGenerationRequest,
} from '@platform/contracts';
import type { PlainBus } from '@platform/messaging';
import { bearer, eventually } from '@platform/testing';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('recurring generation', () => {
  let service: TaskFixture;
  let scheduling: PlainBus;

  const triggers = async (facilityId: number) => {
    const { body } = await service.api.get('/Triggers').query({ facilityId }).set(PARTNER).expect(200);
    return body.triggers;
  };

  beforeAll(async () => {
    service = await startTaskService();
    await service.watch(ScheduledMessageEvent);
    scheduling = await service.connect('scheduling');
  });
  afterAll(() => service.close());

  describe('by request over the bus', () => {
    const schedule = (message: ScheduleRecurringTaskInstanceGenerationRequest) =>
      scheduling.request(ScheduleRecurringTaskInstanceGenerationRequest, message, { timeoutMs: 5_000 });

    it('replies Succeeded to concurrent first requests for a facility: one creates, the others replace', async () => {
      for (let facilityId = 7_100; facilityId < 7_115; facilityId += 1) {
        const answers = await Promise.all(Array.from({ length: 6 }, () => schedule({ facilityId })));
        const replaced = answers.map((answer) => 'succeeded' in answer && answer.succeeded?.replaced);
        expect(replaced.sort()).toEqual([false, true, true, true, true, true]);
      }
    });

    it('replies Succeeded with the trigger, and whether one was replaced', async () => {
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
      // Announced when created and when the cron expression changed, in that order, but not when nothing
      // changed.
      expect(announced.map(({ message }) => message.schedule)).toEqual(['30 5 * * *', '0 6 * * *']);
    });

    it('corrects a next fire that was planned by a clock set ahead, but keeps an overdue one', async () => {
      const planned = await schedule({ facilityId: 704, schedule: '0 3 * * *' });
      await service.database.query(
        `UPDATE task.triggers SET state = 'PAUSED', next_fire_at = next_fire_at + interval '1 year', previous_fire_at = now() + interval '1 year'
         WHERE facility_id = 704`,
      );
      expect(await schedule({ facilityId: 704, schedule: '0 3 * * *' })).toEqual({
        succeeded: { ...('succeeded' in planned && planned.succeeded), replaced: true, state: 'PAUSED' },
      });
      expect(await triggers(704)).toMatchObject([{ previousFireAtUtc: null, state: 'PAUSED' }]);
      const overdueAt = new Date(Date.now() - 3_600_000);
      await service.database.query('UPDATE task.triggers SET next_fire_at = $1 WHERE facility_id = 704', [
        overdueAt,
      ]);
      await schedule({ facilityId: 704 });
      expect(await triggers(704)).toMatchObject([{ nextFireAtUtc: overdueAt.toISOString() }]);
    });

    it('replies that the trigger is paused', async () => {
      await schedule({ facilityId: 705 });
      await service.api.post('/Triggers/705/commands/pause').set(PARTNER).expect(200);
      expect(await schedule({ facilityId: 705, schedule: '0 6 * * *' })).toMatchObject({
        succeeded: { schedule: '0 6 * * *', state: 'PAUSED' },
      });
    });

    it.each([
      [{ facilityId: 702, schedule: '0 0 31 2 */2' }, 'InvalidSchedule'],
      [{ facilityId: 702, schedule: '@daily' }, 'InvalidSchedule'],
      [{ facilityId: 702, timeZone: 'Mars/Olympus' }, 'InvalidTimeZone'],
      [{ facilityId: 0 }, 'InvalidFacility'],
    ])('replies Failed to %j with code %s', async (message, code) => {
      expect(await schedule(message)).toEqual({
        failed: { facilityId: message.facilityId, code, reason: expect.any(String) },
      });
      expect(await triggers(702)).toEqual([]);
    });

    it('removes the trigger, and replies whether there was one', async () => {
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

    it('replies Failed to a removal for an invalid facility', async () => {
      const unscheduled = scheduling.request(
        UnscheduleRecurringTaskInstanceGenerationRequest,
        { facilityId: 0 },
        { timeoutMs: 5_000 },
      );
      expect(await unscheduled).toEqual({
        failed: { facilityId: 0, code: 'InvalidFacility', reason: expect.any(String) },
      });
    });
  });

  describe('by command', () => {
    const command = (name: string, body: object, token = PARTNER) =>
      service.api.post(`/commands/${name}RecurringTaskInstanceGeneration`).set(token).send(body);

    it('responds with 200 and the reply of the bus', async () => {
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

    it('responds with 422, result, code and reason if the reply is Failed', async () => {
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

    it('requires InternalPartner and a valid body', async () => {
      await command('schedule', { facilityId: 501 }, CUSTOMER).expect(403);
      await command('unschedule', { facilityId: 501 }, bearer({ personas: 30 })).expect(403);
      await command('schedule', {}).expect(400);
      await command('schedule', { facilityId: 501, cron: '0 3 * * *' }).expect(400);
      await service.api.post('/commands/scheduleRecurringTaskInstanceGeneration').send({}).expect(401);
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
