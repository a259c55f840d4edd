import { randomUUID } from 'node:crypto';
import {
  BusinessUnitChangeV1,
  ScheduleCreatedEvent,
  ScheduleCreatedNotification,
  TaskInstanceGenerationRequested,
} from '@platform/contracts';
import { Metrics } from '@platform/service-defaults';
import { eventually } from '@platform/testing';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** Connections that five queues with a prefetch of ten, the relay and HTTP share. */
const POOL = { DATABASE_POOL_SIZE: '11', DATABASE_POOL_CONSUMERS: '4', DATABASE_POOL_RELAY: '3' };
const BODY = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };

describe('blocked consumers', () => {
  let service: TaskFixture;
  const post = (body: object = BODY) => service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
  const metric = async (line: string): Promise<number> => {
    const text = await service.app.get(Metrics).registry.metrics();
    return Number(
      text
        .split('\n')
        .find((each) => each.startsWith(`${line} `))
        ?.split(' ')
        .at(-1),
    );
  };

  beforeAll(async () => {
    service = await startTaskService({ env: POOL });
    await service.watch(ScheduleCreatedEvent);
  });
  afterAll(() => service.close());

  it('leave HTTP and the relay their connections, report what waits, and lose nothing', async () => {
    const bus = await service.connect('scheduling');
    const { body } = await post();
    const release = await blockConsumers(service);
    const created = { ...body, createdBy: { personId: null, name: null, persona: 1 } };
    for (let index = 0; index < 20; index += 1) await bus.publish(ScheduleCreatedNotification, created);
    await eventually(async () => {
      // Of the ten prefetched messages of this facility, one is processed at a time.
      expect(await metric('database_pool_connections{database="consumers",state="in_use"}')).toBe(1);
      // One waits for its turn; the others have been put off.
      expect(await metric('messaging_deliveries_waiting')).toBe(1);
    });
    for (let index = 0; index < 20; index += 1) await post();
    await service.received(ScheduleCreatedEvent, 21);
    await service.api.get('/health/ready').expect(200);
    await release();
    await eventually(async () => {
      expect(await service.database.query('SELECT 1 FROM task.inbox')).toHaveLength(20);
      expect(await metric('messaging_deliveries_waiting')).toBe(0);
    });
    expect(await metric('database_pool_connections_max{database="task"}')).toBe(4);
  });

  it('of one facility leave connections for commands and for the generation of other facilities', async () => {
    const bus = await service.connect('scheduling');
    const { body: held } = await post();
    const { body: other } = await post({ ...BODY, facilityId: 502 });
    await service.database.query('BEGIN');
    await service.database.query('SELECT 1 FROM task.schedules WHERE facility_id = 501 FOR UPDATE');
    const at = new Date().toISOString();
    const fire = { scheduledFireTimeUtc: at, fireTimeUtc: at, misfired: false, missedCount: 0 };
    const createdBy = { personId: null, name: null, persona: 1 };
    for (let index = 0; index < 9; index += 1) {
      await bus.publish(TaskInstanceGenerationRequested, { ...fire, facilityId: 501 });
      await bus.publish(ScheduleCreatedNotification, { ...held, createdBy });
    }
    await eventually(async () => expect(await lockWaiters(service)).toBeGreaterThan(0));
    for (const facilityId of [601, 602, 603]) {
      const startedAt = performance.now();
      await service.api
        .post('/commands/scheduleRecurringTaskInstanceGeneration')
        .set(PARTNER)
        .send({ facilityId })
        .expect(200);
      expect(performance.now() - startedAt).toBeLessThan(2_000);
    }
    await bus.publish(TaskInstanceGenerationRequested, { ...fire, facilityId: 502 });
    await eventually(
      async () =>
        expect(await generatedFor(service, (other as { scheduleId: string }).scheduleId)).toBeGreaterThan(0),
      { timeoutMs: 3_000 },
    );
    await service.database.query('COMMIT');
    await eventually(async () => expect(await metric('messaging_deliveries_waiting')).toBe(0));
  }, 60_000);

  const facility = (): Held => ({
    send: async (facilityId) => {
      const messageId = randomUUID();
      const at = new Date().toISOString();
      const fire = { scheduledFireTimeUtc: at, fireTimeUtc: at, misfired: false, missedCount: 0 };
      const bus = await service.connect('scheduling');
      await bus.publish(TaskInstanceGenerationRequested, { ...fire, facilityId }, { messageId });
      return messageId;
    },
    lock: 'SELECT 1 FROM task.schedules WHERE facility_id = 701 FOR UPDATE',
  });
  const businessUnit = (): Held => ({
    send: async (businessUnitId) => {
      const messageId = randomUUID();
      const bus = await service.connect('main');
      await bus.publish(
        BusinessUnitChangeV1,
        {
          eventId: randomUUID(),
          occurredAtUtc: new Date().toISOString(),
          businessUnitId,
          facilityIds: [9_000 + businessUnitId],
          changeType: 'Activated',
        },
        { messageId },
      );
      return messageId;
    },
    lock: 'SELECT 1 FROM task.business_units WHERE business_unit_id = 701 FOR UPDATE',
  });

  it('of several facilities leave a connection for the others of the queue, and lose nothing', async () => {
    const { send } = facility();
    const locked = [801, 802, 803, 804, 805, 806];
    for (const facilityId of [...locked, 811]) await post({ ...BODY, facilityId });
    await service.database.query('BEGIN');
    await service.database.query('SELECT 1 FROM task.schedules WHERE facility_id = ANY ($1) FOR UPDATE', [
      locked,
    ]);
    const late: string[] = [];
    for (let round = 0; round < 4; round += 1)
      for (const facilityId of locked) late.push(await send(facilityId));
    await eventually(async () => expect(await lockWaiters(service)).toBeGreaterThan(0));
    const others: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      const startedAt = performance.now();
      const other = await send(811);
      others.push(other);
      await eventually(async () => expect(await applied(service, [other])).toBe(1), { timeoutMs: 6_000 });
      // Once the locked facilities are known, they no longer delay others.
      if (round > 0) expect(performance.now() - startedAt).toBeLessThan(2_000);
    }
    expect(await applied(service, late)).toBe(0);
    await service.database.query('COMMIT');
    await eventually(async () => expect(await applied(service, late)).toBe(late.length), {
      timeoutMs: 40_000,
    });
    expect(await metric('messaging_errored_total')).toBeNaN();
  }, 90_000);

  it.each([
    ['facility', facility],
    ['business unit', businessUnit],
  ])(
    'of one %s delay no other one of their queue, and lose no message',
    async (_what, held) => {
      const { send, lock } = held();
      for (const facilityId of [701, 702]) await post({ ...BODY, facilityId });
      const first = await send(701);
      await eventually(async () => expect(await applied(service, [first])).toBe(1));
      await service.database.query('BEGIN');
      expect(await service.database.query(lock)).not.toHaveLength(0);
      const late: string[] = [];
      for (let index = 0; index < 12; index += 1) late.push(await send(701));
      await eventually(async () => expect(await lockWaiters(service)).toBeGreaterThan(0));
      const other = await send(702);
      await eventually(async () => expect(await applied(service, [other])).toBe(1), { timeoutMs: 5_000 });
      expect(await applied(service, late)).toBe(0);
      await service.database.query('COMMIT');
      await eventually(async () => expect(await applied(service, late)).toBe(12), { timeoutMs: 30_000 });
    },
    60_000,
  );
});

/**
 * A message whose consumer can be blocked. `send` publishes it for a facility or business unit and returns
 * its id; `lock` is the statement that locks the rows of 701.
 */
interface Held {
  readonly send: (id: number) => Promise<string>;
  readonly lock: string;
}

async function applied({ database }: TaskFixture, messageIds: readonly string[]): Promise<number> {
  return (await database.query('SELECT 1 FROM task.inbox WHERE message_id = ANY ($1)', [messageIds])).length;
}

/** Blocks the first statement of every consumer. Returns a function that ends this. */
async function blockConsumers({ database }: TaskFixture): Promise<() => Promise<void>> {
  await database.query('BEGIN');
  await database.query('LOCK TABLE task.inbox IN SHARE MODE');
  return async () => {
    await database.query('COMMIT');
  };
}

/** Returns the number of sessions that wait for a lock. */
async function lockWaiters({ database }: TaskFixture): Promise<number> {
  const rows = await database.querySuperuser(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows.length;
}

async function generatedFor({ database }: TaskFixture, scheduleId: string): Promise<number> {
  return (await database.query('SELECT 1 FROM task.instances WHERE schedule_id = $1', [scheduleId])).length;
}
