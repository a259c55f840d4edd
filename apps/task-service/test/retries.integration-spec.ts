import { randomUUID } from 'node:crypto';
import { BusinessUnitChangeV1, TaskInstanceGenerationRequested } from '@platform/contracts';
import { errorQueue, retryQueue } from '@platform/messaging';
import type { PlainBus } from '@platform/messaging';
import { TcpProxy, eventually } from '@platform/testing';
import { SYSTEM_CLOCK, sleep } from '@platform/time';
import { OutboundProxy } from '../src/outbound/outbound-proxy.service';
import { QUEUES } from '../src/recurring-generation/queues';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { GenerationTriggersService } from '../src/recurring-generation/generation-triggers.service';
import { startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** Speed-up of delays inside the process. Delays in the broker take their real time. */
const SPEED = 1_000;
const TEN_MS_TO_100_S = [10, 100, 1_000, 10_000, 100_000];

/** Covers the limits table of the task messaging spec, with a real broker and database. */
describe('retries', () => {
  let service: TaskFixture;
  let database: TcpProxy;
  let main: PlainBus;
  let scheduling: PlainBus;
  const waitsMs: number[] = [];
  /** Work to run during a delay, by the length of the delay in ms. */
  const duringDelay = new Map<number, () => Promise<unknown>>();

  beforeAll(async () => {
    service = await startTaskService({
      databaseUrl: async (url) => (database = await TcpProxy.start(url)).url,
      clock: {
        ...SYSTEM_CLOCK,
        sleep: async (durationMs, signal) => {
          waitsMs.push(durationMs);
          await duringDelay.get(durationMs)?.();
          await sleep(durationMs / SPEED, signal);
        },
      },
    });
    [main, scheduling] = await Promise.all([service.connect('main'), service.connect('scheduling')]);
  });
  beforeEach(() => {
    waitsMs.splice(0);
    duringDelay.clear();
  });
  afterAll(async () => {
    await service.close();
    await database.stop();
  });

  /** Makes the last statement for the facility fail until `repair`. */
  const breakFacility = (table: string, facilityId: number) =>
    service.database.query(
      `ALTER TABLE task.${table} ADD CONSTRAINT broken CHECK (facility_id <> ${String(facilityId)}) NOT VALID`,
    );
  const repair = (table: string) =>
    service.database.query(`ALTER TABLE task.${table} DROP CONSTRAINT broken`);
  const rowsOf = (table: string, facilityId: number) =>
    service.database.query(`SELECT 1 FROM task.${table} WHERE facility_id = $1`, [facilityId]);

  describe('of a business-unit change', () => {
    const activate = (facilityId: number) =>
      main.publish(BusinessUnitChangeV1, {
        eventId: randomUUID(),
        occurredAtUtc: new Date().toISOString(),
        businessUnitId: facilityId,
        facilityIds: [facilityId],
        changeType: 'Activated',
      });

    it('begin after 5 s, and then apply the change', async () => {
      const endedAtMs: number[] = [];
      const generation = service.app.get(GenerationTriggersService);
      const execute = generation.scheduleAll.bind(generation);
      jest.spyOn(generation, 'scheduleAll').mockImplementation(async (...args) => {
        const startedAtMs = performance.now();
        try {
          return await execute(...args);
        } finally {
          endedAtMs.push(endedAtMs.length === 0 ? performance.now() : startedAtMs);
        }
      });
      await breakFacility('triggers', 901);
      await activate(901);
      await eventually(() => expect(endedAtMs).toHaveLength(1));
      await repair('triggers');
      await eventually(async () => expect(await rowsOf('triggers', 901)).toHaveLength(1), {
        timeoutMs: 25_000,
      });
      const [failedAtMs = 0, triedAgainAtMs = 0, ...others] = endedAtMs;
      expect(others).toEqual([]);
      expect(triedAgainAtMs - failedAtMs).toBeGreaterThanOrEqual(5_000);
    });

    it('are five, after 5 s, 30 s, 1 min, 3 min and 5 min, before it goes to the error queue with the reason', async () => {
      const { management } = service.brokers.main;
      const take = (queue: string) =>
        eventually(async () => {
          const [message] = await management.get(queue, 1);
          if (message === undefined) throw new Error(`${queue} is empty`);
          return message;
        });
      await breakFacility('triggers', 902);
      await activate(902);
      for (const [index, delayMs] of [5_000, 30_000, 60_000, 180_000, 300_000].entries()) {
        const { body, properties, headers } = await take(retryQueue(QUEUES.businessUnitChange, delayMs));
        expect(headers).toMatchObject({ 'x-retry-attempts': index + 1 });
        // Moves the message back, as the broker does after the delay.
        await management.publish('', { body, properties, routingKey: QUEUES.businessUnitChange });
      }
      const { headers } = await take(errorQueue(QUEUES.businessUnitChange));
      expect(headers).toMatchObject({
        'x-error-reason': 'failed',
        'x-retry-attempts': 5,
        'MT-Fault-Message': expect.stringContaining('broken'),
      });
      await repair('triggers');
      expect(await rowsOf('triggers', 902)).toEqual([]);
    });
  });

  describe('of the generator', () => {
    const addSchedule = (facilityId: number, schedule: string) =>
      service.database.query(
        `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until,
           created_by_subject, created_by_persona, request_digest)
         VALUES (gen_random_uuid(), $1, 'n', $2, 'UTC', now(), 's', 1, 'd')`,
        [facilityId, schedule],
      );
    const request = (facilityId: number) =>
      scheduling.publish(TaskInstanceGenerationRequested, {
        facilityId,
        scheduledFireTimeUtc: new Date().toISOString(),
        fireTimeUtc: new Date().toISOString(),
        misfired: false,
        missedCount: 0,
      });
    const take = (queue: string) =>
      eventually(async () => {
        const [message] = await service.brokers.scheduling.management.get(queue, 1);
        if (message === undefined) throw new Error(`${queue} is empty`);
        return message;
      });
    /** Moves a message out of its retry queue without the delay, and records that delay. */
    const passOn = async (delayMs: number, meanwhile?: () => Promise<unknown>): Promise<void> => {
      const { body, properties } = await take(retryQueue(QUEUES.generation, delayMs));
      waitsMs.push(delayMs);
      await meanwhile?.();
      const { management } = service.brokers.scheduling;
      await management.publish('', { body, properties, routingKey: QUEUES.generation });
    };
    const exhaustRetries = async () => {
      await passOn(10_000);
      await passOn(100_000);
      return (await take(errorQueue(QUEUES.generation))).headers;
    };

    it('are five, after 10 ms to 100 s, for a failure of the database', async () => {
      await addSchedule(911, '0 6 * * *');
      await breakFacility('instances', 911);
      await request(911);
      expect(await exhaustRetries()).toMatchObject({ 'x-error-reason': 'failed' });
      expect(waitsMs).toEqual(TEN_MS_TO_100_S);
      await repair('instances');
    });

    it('are five for any other failure, too', async () => {
      const generation = service.app.get(InstanceGenerationService);
      const generate = generation.generate.bind(generation);
      const spy = jest.spyOn(generation, 'generate').mockImplementation((manager, target) => {
        if (target.facilityId === 912) throw new TypeError('a defect');
        return generate(manager, target);
      });
      await addSchedule(912, '0 6 * * *');
      await request(912);
      expect(await exhaustRetries()).toMatchObject({ 'x-error-reason': 'failed' });
      expect(waitsMs).toEqual(TEN_MS_TO_100_S);
      spy.mockRestore();
    });

    it('end with the first success', async () => {
      await addSchedule(913, '0 6 * * *');
      await breakFacility('instances', 913);
      await request(913);
      await passOn(10_000, () => repair('instances'));
      await eventually(async () => expect((await rowsOf('instances', 913)).length).toBeGreaterThan(0));
      expect(waitsMs).toEqual([10, 100, 1_000, 10_000]);
    });

    it('do not delay other facilities, however many fail', async () => {
      const failing = Array.from({ length: 30 }, (_, index) => 1_000 + index);
      await service.database.query(
        'ALTER TABLE task.instances ADD CONSTRAINT broken CHECK (facility_id NOT BETWEEN 1000 AND 1029) NOT VALID',
      );
      for (const facilityId of failing) await addSchedule(facilityId, '0 6 * * *');
      await addSchedule(914, '0 6 * * *');
      for (const facilityId of failing) await request(facilityId);
      await request(914);
      await eventually(async () => expect((await rowsOf('instances', 914)).length).toBeGreaterThan(0));
      await eventually(() => expect(waitsMs.filter((ms) => ms === 1_000)).toHaveLength(failing.length));
      expect(Math.max(...waitsMs)).toBe(1_000);
      await eventually(async () => {
        const state = await service.brokers.scheduling.management.queue(
          retryQueue(QUEUES.generation, 10_000),
        );
        expect(state?.messages).toBe(failing.length);
      });
      await repair('instances');
    });
  });

  describe('of the message store', () => {
    it('are five, after 10 ms to 100 s, while no connection can be opened', async () => {
      await database.refuse();
      const stored = service.app.get(OutboundProxy).transaction((manager) => manager.query('SELECT 1'), {
        deadlineMs: 200_000,
      });
      await expect(stored).rejects.toThrow('the database was not reachable (6 attempts)');
      expect(waitsMs).toEqual(TEN_MS_TO_100_S);
      await database.restore();
    });

    it('end with the first connection, and are not made for other failures', async () => {
      const run = (sql: string) =>
        service.app.get(OutboundProxy).transaction<unknown>((manager) => manager.query(sql));
      await database.refuse();
      duringDelay.set(1_000, () => database.restore());
      await expect(run('SELECT 1 AS one')).resolves.toEqual([{ one: 1 }]);
      expect(waitsMs).toEqual([10, 100, 1_000]);
      await expect(run('SELECT nonsense')).rejects.toThrow(/nonsense/);
      expect(waitsMs).toEqual([10, 100, 1_000]);
    });
  });
});
