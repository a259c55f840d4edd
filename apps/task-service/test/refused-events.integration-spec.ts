import { randomUUID } from 'node:crypto';
import { ScheduleCreatedEvent, TaskInstanceCompletedEvent } from '@platform/contracts';
import { exchangeName } from '@platform/messaging';
import { Metrics } from '@platform/service-defaults';
import { eventually, permitFaults } from '@platform/testing';
import { type Channel, type ChannelModel, connect } from 'amqplib';
import fc from 'fast-check';
import { partitionOf } from '../src/outbound/outbound-event';
import { NAMESPACE, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const COMPLETED = exchangeName(NAMESPACE, 'TaskInstanceCompletedEvent');
const FULL_QUEUE = 'slow-subscriber';
const FACILITIES = [610, 611, 612, 613, 614, 615];
const EVENTS_PER_FACILITY = 4;
/** Far below the time for which a bus is paused. */
const QUICK_MS = 900;

interface OutboxRow {
  facilityId: number;
  messageId: string;
  attempts: number;
  lastError: string | null;
  parkedAt: Date | null;
}

describe('events of a type that one subscriber rejects', () => {
  let service: TaskFixture;
  let connection: ChannelModel;
  let channel: Channel;

  const outbox = () =>
    service.database.query<OutboxRow>(
      `SELECT facility_id::float8 AS "facilityId", message_id AS "messageId", attempts, last_error AS "lastError", parked_at AS "parkedAt"
       FROM task.outbox WHERE message_type = 'TaskInstanceCompletedEvent' ORDER BY sequence`,
    );
  const outboxIds = async (): Promise<string[]> => {
    const rows = await service.database.query<{ id: string }>('SELECT message_id AS id FROM task.outbox');
    return rows.map(({ id }) => id);
  };
  const complete = async (facilityId: number, attempts = 0): Promise<string> => {
    const messageId = randomUUID();
    await service.database.query(
      `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, attempts)
       VALUES ($1, $2, $3, 'TaskInstanceCompletedEvent', now(), '{}', $4, $5)`,
      [partitionOf(facilityId), facilityId, messageId, JSON.stringify(completion(facilityId)), attempts],
    );
    return messageId;
  };
  const fillSubscriber = async (): Promise<void> => {
    await channel.assertQueue(FULL_QUEUE, {
      durable: true,
      arguments: { 'x-max-length': 1, 'x-overflow': 'reject-publish' },
    });
    await channel.bindQueue(FULL_QUEUE, COMPLETED, '');
    channel.sendToQueue(FULL_QUEUE, Buffer.from('{}'));
    await eventually(async () => {
      expect((await channel.checkQueue(FULL_QUEUE)).messageCount).toBe(1);
    });
  };
  /** Creates a schedule. Returns the time until its event arrived, in ms. */
  const postAndWait = async (facilityId: number, arrivals: Map<string, number>): Promise<number> => {
    const startedAt = performance.now();
    const body = { facilityId, name: 'Round', schedule: '0 9 * * *' };
    const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    const { scheduleId } = created.body as { scheduleId: string };
    await eventually(() => expect(arrivals.has(scheduleId)).toBe(true), { timeoutMs: 30_000, intervalMs: 5 });
    return (arrivals.get(scheduleId) as number) - startedAt;
  };

  beforeAll(async () => {
    service = await startTaskService({ replicas: 2 });
    connection = await connect(service.brokers.main.url);
    channel = await connection.createChannel();
    await service.watch(ScheduleCreatedEvent);
    await service.watch(TaskInstanceCompletedEvent);
  }, 60_000);
  afterEach(async () => {
    await channel.deleteQueue(FULL_QUEUE);
    await service.database.query('DELETE FROM task.outbox');
    await service.database.query('DELETE FROM task.outbox_pauses');
  });
  afterAll(async () => {
    await connection.close();
    await service.close();
  });

  it('wait in order and are counted, delay no others, and are not republished to healthy subscribers', async () => {
    const arrivals = new Map<string, number>();
    const { queue } = await channel.assertQueue('', { exclusive: true });
    await channel.bindQueue(queue, exchangeName(NAMESPACE, 'ScheduleCreatedEvent'), '');
    await channel.consume(
      queue,
      (message) => {
        const body = JSON.parse(String(message?.content)) as { message: { scheduleId: string } };
        arrivals.set(body.message.scheduleId, performance.now());
      },
      { noAck: true },
    );
    await fillSubscriber();
    const stored = new Map<number, string[]>(FACILITIES.map((facilityId) => [facilityId, []]));
    for (let index = 0; index < EVENTS_PER_FACILITY; index += 1)
      for (const facilityId of FACILITIES) stored.get(facilityId)?.push(await complete(facilityId));

    await eventually(
      async () => {
        const refused = (await outbox()).filter(({ attempts }) => attempts > 0);
        expect(refused.length).toBeGreaterThan(0);
        for (const { lastError } of refused) expect(lastError).toContain('basic.nack');
      },
      { timeoutMs: 15_000 },
    );

    const latencies: number[] = [];
    for (let round = 0; round < 10; round += 1)
      for (const facilityId of FACILITIES) latencies.push(await postAndWait(facilityId, arrivals));
    expect(Math.max(...latencies)).toBeLessThan(QUICK_MS);

    // All events are still stored. A healthy subscriber has received at most the first one per facility, and
    // the probes.
    expect(await outbox()).toHaveLength(FACILITIES.length * EVENTS_PER_FACILITY);
    const early = await service.received(TaskInstanceCompletedEvent, 0);
    expect(early.length).toBeLessThan(FACILITIES.length + 10);
    const [metric] = await refusedMetric(service);
    expect(metric).toMatchObject({ message: 'TaskInstanceCompletedEvent', reason: 'queue-refused' });

    await channel.deleteQueue(FULL_QUEUE);
    await eventually(async () => expect(await outbox()).toEqual([]), { timeoutMs: 40_000 });
    const published = new Map<number, string[]>(FACILITIES.map((facilityId) => [facilityId, []]));
    for (const { messageId, message } of await service.received(TaskInstanceCompletedEvent, 24)) {
      const ids = published.get(message.facilityId);
      if (ids?.includes(messageId) === false) ids.push(messageId);
    }
    expect(published).toEqual(stored);
    expect(await service.database.query('SELECT 1 FROM task.outbox_pauses')).toEqual([]);
  }, 120_000);

  it('are published past rows that cannot be read or sent', async () => {
    permitFaults();
    const damages: Readonly<Record<string, string>> = {
      'violates its contract': `message = '{}'`,
      'is not an object': `message = 'null'`,
      'has no headers': `trace_headers = 'null'`,
      'has strange headers': `trace_headers = '{"traceparent": 5, "x": {"!": "odd"}}'`,
      'has the maximum number of attempts': `message = '[]', attempts = 2147483647`,
      'is of a type of a later release': `message_type = 'LaterEvent'`,
      'is larger than any receiver accepts': `message = json_build_object('facilityId', repeat('x', 2000000))`,
      'is nested 6,000 levels deep': `message = (repeat('[', 6000) || repeat(']', 6000))::json`,
    };
    const facilities = Array.from({ length: 20 }, (_, index) => 630 + index);
    const chosen = fc.sample(fc.uniqueArray(fc.nat(19), { minLength: 8, maxLength: 8 }), 1)[0] as number[];
    // In one transaction, so that no event is published before it is damaged.
    await service.database.query('BEGIN');
    const damaged = new Set<string>();
    for (const [position, change] of chosen.map(
      (at, index) => [at, Object.values(damages)[index]] as const,
    )) {
      const messageId = await complete(facilities[position % 20] as number);
      await service.database.query(`UPDATE task.outbox SET ${String(change)} WHERE message_id = $1`, [
        messageId,
      ]);
      damaged.add(messageId);
      await complete(facilities[(position + 1) % 20] as number);
    }
    const healthy: string[] = [];
    for (const facilityId of facilities) healthy.push(await complete(facilityId + 100));
    await service.database.query('COMMIT');
    await eventually(
      async () => {
        const left = (await outboxIds()).filter((id) => !damaged.has(id));
        const heldBack = await service.database.query<{ id: string }>(
          `SELECT event.message_id AS id FROM task.outbox AS event JOIN task.outbox AS bad USING (facility_id, message_type)
           WHERE bad.attempts > 0 AND bad.parked_at IS NULL AND bad.sequence < event.sequence`,
        );
        expect({ chosen, left }).toEqual({
          chosen,
          left: left.filter((id) => heldBack.some((row) => row.id === id)),
        });
      },
      { timeoutMs: 20_000 },
    );
    expect(await outboxIds()).not.toEqual(expect.arrayContaining(healthy));
    expect(await service.database.query('SELECT 1 FROM task.outbox_pauses')).toEqual([]);
  }, 60_000);

  it('are retried at once if a clock set ahead has set their next attempt, or the next probe of their type', async () => {
    await service.database.query(
      `INSERT INTO task.outbox_pauses (message_type, reason, last_error, next_probe_at)
       VALUES ('TaskInstanceCompletedEvent', 'unconfirmed', 'test', now() + interval '5 minutes')`,
    );
    await complete(631, 1);
    await complete(631);
    await service.database.query(
      `UPDATE task.outbox SET next_attempt_at = now() + interval '1 day' WHERE attempts = 1`,
    );
    await service.database.query(`UPDATE task.outbox_pauses SET next_probe_at = now() + interval '1 day'`);
    await eventually(
      async () => {
        expect(await outbox()).toEqual([]);
        expect(await service.database.query('SELECT 1 FROM task.outbox_pauses')).toEqual([]);
      },
      { timeoutMs: 15_000 },
    );
  });

  it('are parked after 20 attempts, with the reason', async () => {
    permitFaults();
    await fillSubscriber();
    await complete(620, 19);
    await eventually(
      async () =>
        expect(await outbox()).toMatchObject([
          { attempts: 20, parkedAt: expect.any(Date), lastError: expect.stringContaining('basic.nack') },
        ]),
      { timeoutMs: 15_000 },
    );
  });
});

const completion = (facilityId: number) => ({
  taskInstanceId: randomUUID(),
  scheduleId: randomUUID(),
  facilityId,
  dueAtUtc: '2026-01-01T06:00:00.000Z',
  completedAtUtc: '2026-01-01T07:00:00.000Z',
  completedBy: { personId: null, name: null, persona: 1 },
});

/** Returns the labels of all refusals counted so far. */
async function refusedMetric({ apps }: TaskFixture): Promise<Partial<Record<string, string | number>>[]> {
  const counters = await Promise.all(
    apps.map((app) => app.get(Metrics).counter('task_outbox_refused_total', '').get()),
  );
  return counters.flatMap((counter) =>
    counter.values.filter(({ value }) => value > 0).map(({ labels }) => labels),
  );
}
