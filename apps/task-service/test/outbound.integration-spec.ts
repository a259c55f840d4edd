import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ScheduleCreatedEvent } from '@platform/contracts';
import { Metrics } from '@platform/service-defaults';
import { permitFaults, TcpProxy, eventually } from '@platform/testing';
import { exchangeName } from '@platform/messaging';
import { type Channel, connect } from 'amqplib';
import { partitionOf } from '../src/outbound/outbound-event';
import { NAMESPACE, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** The readiness probe of the Kubernetes manifest. */
const PROBE = /path: (\/health\/ready\S*)/.exec(
  readFileSync(join(__dirname, '../../../k8s/base/task-service/deployment.yaml'), 'utf8'),
)?.[1] as string;
const FROZEN_LIMIT_MS = 16_000;
const BODY = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };

describe('the outbound proxy', () => {
  let service: TaskFixture;
  let database: TcpProxy;
  let mainBus: TcpProxy;

  const post = async (body: object, replica = 0): Promise<string> => {
    const answer = await service.apis[replica]?.post('/Schedules').set(PARTNER).send(body).expect(201);
    return answer?.body.scheduleId;
  };
  const stored = () =>
    service.database.query<{ attempts: number; last_error: string | null; parked_at: Date | null }>(
      'SELECT attempts, last_error, parked_at FROM task.outbox ORDER BY sequence',
    );
  const isDrained = () => eventually(async () => expect(await stored()).toEqual([]), { timeoutMs: 25_000 });
  const publishedFor = async (facilityId: number, count: number): Promise<string[]> =>
    eventually(
      async () => {
        const events = await service.received(ScheduleCreatedEvent, 0);
        const ours = events.filter(({ message }) => message.facilityId === facilityId);
        expect(ours.length).toBeGreaterThanOrEqual(count);
        return ours.map(({ message }) => message.scheduleId);
      },
      { timeoutMs: 25_000 },
    );

  beforeAll(async () => {
    service = await startTaskService({
      replicas: 2,
      databaseUrl: async (url) => (database = await TcpProxy.start(url)).url,
      mainUrl: async (url) => (mainBus = await TcpProxy.start(url)).url,
    });
  });
  afterAll(async () => {
    await service.close();
    await Promise.all([database.stop(), mainBus.stop()]);
  });

  it('keeps an event without a bound queue, records why, and publishes it once a queue is bound', async () => {
    const first = await post({ ...BODY, facilityId: 400 });
    const second = await post({ ...BODY, facilityId: 400 });
    await eventually(async () => {
      const [head, follower] = await stored();
      expect(head).toMatchObject({ last_error: expect.stringContaining('MessageReturnedError') });
      // The next event of the same facility and type is held back without an attempt.
      expect(follower).toMatchObject({ attempts: 0 });
    });
    await service.watch(ScheduleCreatedEvent);
    expect(await publishedFor(400, 2)).toEqual([first, second]);
    await isDrained();
  });

  it('keeps the order of a facility although both replicas publish', async () => {
    const created: Record<number, string[]> = { 410: [], 411: [] };
    for (let index = 0; index < 30; index += 1) {
      for (const facilityId of [410, 411])
        created[facilityId]?.push(await post({ ...BODY, facilityId }, index % 2));
    }
    for (const facilityId of [410, 411])
      expect(await publishedFor(facilityId, 30)).toEqual(created[facilityId]);
    await isDrained();
  });

  it('keeps the order of each of many facilities that share partitions on both replicas', async () => {
    const facilities = Array.from({ length: 24 }, (_, index) => 1_000 + index);
    const created = new Map<number, string[]>();
    await Promise.all(
      facilities.map(async (facilityId) => {
        const ids: string[] = [];
        for (let index = 0; index < 5; index += 1) ids.push(await post({ ...BODY, facilityId }, index % 2));
        created.set(facilityId, ids);
      }),
    );
    await isDrained();
    const published = new Map<number, string[]>(facilities.map((facilityId) => [facilityId, []]));
    for (const { message } of await service.received(ScheduleCreatedEvent, 0))
      published.get(message.facilityId)?.push(message.scheduleId);
    expect(published).toEqual(created);
  });

  it('publishes the other partitions while passes over one of them fail', async () => {
    const partition = partitionOf(1_000);
    // Publishing the message fails, and so does recording that failure.
    await service.database.query(
      'ALTER TABLE task.outbox ADD CONSTRAINT broken CHECK (attempts < 19) NOT VALID',
    );
    await service.database.query(
      `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, attempts)
       VALUES ($1, 1000, gen_random_uuid(), 'ScheduleCreatedEvent', now(), '{}', '{}', 18)`,
      [partition],
    );
    const facilities = Array.from({ length: 40 }, (_, index) => 1_100 + index);
    await Promise.all(facilities.map((facilityId, index) => post({ ...BODY, facilityId }, index % 2)));
    const others = 'SELECT 1 FROM task.outbox WHERE partition <> $1';
    await eventually(async () => expect(await service.database.query(others, [partition])).toEqual([]));
    await service.database.query('ALTER TABLE task.outbox DROP CONSTRAINT broken');
    await service.database.query('DELETE FROM task.outbox WHERE attempts = 18');
    await isDrained();
  });

  it('responds with 201 while the broker is down, and drains in order afterwards', async () => {
    await mainBus.refuse();
    const created: string[] = [];
    for (let index = 0; index < 20; index += 1)
      created.push(await post({ ...BODY, facilityId: 420 }, index % 2));
    const waiting = await stored();
    expect(waiting).toHaveLength(20);
    await service.api.get('/health/ready').expect(503);
    // The replica accepted the schedules above, so the probe must keep sending requests to it.
    await service.api.get(PROBE).expect(200);
    await service.api.get('/health/live').expect(200);
    await mainBus.restore();
    const published = await publishedFor(420, 20);
    // An event whose confirm was lost may be published twice. First publications are in the order of
    // creation.
    expect([...new Set(published)]).toEqual(created);
    await isDrained();
    // An outage does not count as an attempt.
    expect(waiting.every(({ attempts }) => attempts === 0)).toBe(true);
  });

  it('drains after the broker closed its connections', async () => {
    await service.brokers.main.management.closeConnections();
    const created = [await post({ ...BODY, facilityId: 430 }), await post({ ...BODY, facilityId: 430 }, 1)];
    expect([...new Set(await publishedFor(430, 2))]).toEqual(created);
    await isDrained();
  });

  it('parks an event after 20 attempts, counts it, and publishes the others', async () => {
    permitFaults();
    const parkedBefore = await parkedTotal(service);
    // Declares the event's exchange with another type.
    const exchange = exchangeName(NAMESPACE, 'TaskInstanceCompletedEvent');
    await onBroker(service, (channel) => channel.assertExchange(exchange, 'topic', { durable: true }));
    const insert = `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, attempts)
      VALUES (3, 440, gen_random_uuid(), 'TaskInstanceCompletedEvent', now(), '{}', $1, 19)`;
    await service.database.query(insert, [completion(440)]);
    await eventually(async () => {
      expect(await stored()).toMatchObject([
        {
          attempts: 20,
          parked_at: expect.any(Date),
          last_error: expect.stringContaining("exchange 'Platform"),
        },
      ]);
      expect(await parkedTotal(service)).toBe(parkedBefore + 1);
    });
    const created = await post({ ...BODY, facilityId: 440 });
    expect(await publishedFor(440, 1)).toEqual([created]);
    await onBroker(service, (channel) => channel.deleteExchange(exchange));
    await service.database.query('DELETE FROM task.outbox');
  });

  it('counts no attempt for other events when the broker refuses one, and sends events without subscribers', async () => {
    const exchange = exchangeName(NAMESPACE, 'ScheduledMessageEvent');
    const { scheduling } = service.brokers;
    await onBroker({ brokers: { main: scheduling } }, async (channel) => {
      await channel.deleteExchange(exchange);
      await channel.assertExchange(exchange, 'topic', { durable: true });
    });
    const insert = `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
      SELECT $1, facility, gen_random_uuid(), type, now(), '{}', message
      FROM unnest($2::int[], $3::text[], $4::json[]) AS event (facility, type, message)`;
    const scheduled = { subsystemName: 's', messageName: 'm', description: 'd', schedule: '0 2 * * *' };
    const fire = {
      scheduledFireTimeUtc: '2026-01-01T06:00:00Z',
      fireTimeUtc: '2026-01-01T06:00:00Z',
      missedCount: 0,
    };
    const facilities = Array.from({ length: 100 }, (_, index) => 2_000 + index);
    await service.database.query(insert, [
      7,
      [...facilities, ...facilities, 2_000],
      [
        ...facilities.map(() => 'ITaskInstanceGenerationRequested'),
        ...facilities.map(() => 'TaskInstanceCompletedEvent'),
        'ScheduledMessageEvent',
      ],
      [
        ...facilities.map((facilityId) => JSON.stringify({ ...fire, facilityId, misfired: false })),
        ...facilities.map((facilityId) => JSON.stringify(completion(facilityId))),
        JSON.stringify(scheduled),
      ],
    ]);
    await eventually(async () => {
      const left = await stored();
      expect(left).toHaveLength(1);
      expect(left[0]?.last_error).toContain("inequivalent arg 'type'");
    });
    await onBroker({ brokers: { main: scheduling } }, (channel) => channel.deleteExchange(exchange));
    await isDrained();
  });

  it('leaves a message type that it does not know to a newer release, and publishes what follows', async () => {
    await service.database.query(
      `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
       VALUES ($1, 445, gen_random_uuid(), 'LaterEvent', now(), '{}', '{}')`,
      [partitionOf(445)],
    );
    const created = await post({ ...BODY, facilityId: 445 });
    expect(await publishedFor(445, 1)).toEqual([created]);
    await eventually(async () => expect(await stored()).toMatchObject([{ attempts: 0, parked_at: null }]));
    await service.database.query('DELETE FROM task.outbox');
  });

  it('responds with 503 in bounded time while the database is down, and recovers by itself', async () => {
    await database.refuse();
    const startedAt = performance.now();
    const answer = await service.api.post('/Schedules').set(PARTNER).send(BODY).expect(503);
    expect(performance.now() - startedAt).toBeLessThan(10_500);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(answer.headers['retry-after']).toBeDefined();
    await database.restore();
    await eventually(() => service.api.post('/Schedules').set(PARTNER).send(BODY).expect(201));
    await isDrained();
  });

  it('responds with 503 in bounded time while the database is frozen, and recovers by itself', async () => {
    database.freeze();
    const startedAt = performance.now();
    const answers = await Promise.all(
      service.apis.map(async (api) => api.post('/Schedules').set(PARTNER).send(BODY).expect(503)),
    );
    // A running statement times out after 12 s, a new connection after 3 s.
    expect(performance.now() - startedAt).toBeLessThan(FROZEN_LIMIT_MS);
    for (const answer of answers) {
      expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
      expect(answer.headers['retry-after']).toBeDefined();
    }
    await service.api.get('/health/live').expect(200);
    await database.restore();
    await eventually(() => service.api.post('/Schedules').set(PARTNER).send(BODY).expect(201), {
      timeoutMs: 20_000,
    });
    await isDrained();
  }, 60_000);

  it('retries through a short outage of the database', async () => {
    await database.refuse();
    const answer = service.api
      .post('/Schedules')
      .set(PARTNER)
      .send({ ...BODY, facilityId: 450 })
      .expect(201);
    const [created] = await Promise.all([answer, database.restore()]);
    expect(await publishedFor(450, 1)).toEqual([created.body.scheduleId]);
  });
});

async function onBroker(
  { brokers: { main } }: { brokers: { main: TaskFixture['brokers']['main'] } },
  work: (channel: Channel) => Promise<unknown>,
): Promise<void> {
  const connection = await connect(main.url);
  await work(await connection.createChannel());
  await connection.close();
}

const completion = (facilityId: number) => ({
  taskInstanceId: randomUUID(),
  scheduleId: randomUUID(),
  facilityId,
  dueAtUtc: '2026-01-01T06:00:00.000Z',
  completedAtUtc: '2026-01-01T07:00:00.000Z',
  completedBy: { personId: null, name: null, persona: 1 },
});

async function parkedTotal({ apps }: TaskFixture): Promise<number> {
  const totals = await Promise.all(
    apps.map((app) => app.get(Metrics).counter('task_outbox_parked_total', '').get()),
  );
  return totals.reduce((sum, { values }) => sum + (values[0]?.value ?? 0), 0);
}
