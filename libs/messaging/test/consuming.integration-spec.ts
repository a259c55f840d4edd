import { randomUUID } from 'node:crypto';
import { type INestApplicationContext, Injectable } from '@nestjs/common';
import {
  BusinessUnitChangeV1,
  ScheduleCreatedNotification,
  TaskInstanceCompletedEvent,
} from '@platform/contracts';
import { HealthRegistry, Metrics } from '@platform/service-defaults';
import { createTestBroker, eventually, type TestBroker, type TestDatabase } from '@platform/testing';
import { DataSource } from 'typeorm';
import {
  type ConsumeContext,
  Consume,
  connectBus,
  createEnvelope,
  MessagePublisher,
  type PlainBus,
} from '../src/index';
import { InboxRepository } from '../src/nest/inbox.repository';
import { BrokerProbe } from './broker-probe';
import { businessUnitChange, completedEvent } from './messages';
import {
  createInboxDatabase,
  effects,
  NAMESPACE,
  SILENT,
  startMessagingApp,
  stopGracefully,
} from './messaging-app';

const COMPLETED_EXCHANGE = `${NAMESPACE}:TaskInstanceCompletedEvent`;
const QUEUE = 'suite.events';

let release: () => void = () => undefined;
let held = Promise.resolve();
let inProcess = 0;

/** Handles two message types of the main bus at one queue, and a third from the scheduling bus. */
@Injectable()
class Recorder {
  @Consume(TaskInstanceCompletedEvent, { queue: QUEUE })
  async onCompleted(
    event: TaskInstanceCompletedEvent,
    { transaction, messageId }: ConsumeContext,
  ): Promise<void> {
    await transaction.query('INSERT INTO effects (note) VALUES ($1)', [`completed ${event.facilityId}`]);
    if (event.facilityId === 666) throw new Error(`no such facility in ${messageId}`);
    inProcess += 1;
    await held;
  }

  @Consume(BusinessUnitChangeV1, { queue: QUEUE })
  async onChange(change: BusinessUnitChangeV1, { transaction }: ConsumeContext): Promise<void> {
    await transaction.query('INSERT INTO effects (note) VALUES ($1)', [
      `${change.changeType} ${change.businessUnitId}`,
    ]);
  }

  @Consume(ScheduleCreatedNotification, { queue: 'suite.schedules' })
  async onSchedule(created: ScheduleCreatedNotification, { transaction }: ConsumeContext): Promise<void> {
    await transaction.query('INSERT INTO effects (note) VALUES ($1)', [`scheduled ${created.name}`]);
  }
}

describe('consuming', () => {
  let main: TestBroker;
  let scheduling: TestBroker;
  let database: TestDatabase;
  let app: INestApplicationContext;
  let neighbour: PlainBus;
  let probe: BrokerProbe;

  beforeAll(async () => {
    [main, scheduling, database] = await Promise.all([
      createTestBroker(),
      createTestBroker(),
      createInboxDatabase(),
    ]);
    neighbour = await connectBus({ url: main.url, name: 'neighbour', logger: SILENT });
    probe = await BrokerProbe.connect(main.url);
  });

  beforeEach(async () => {
    await database.query('TRUNCATE messaging.effects, messaging.inbox');
    app = await startMessagingApp({
      databaseUrl: database.url,
      mainUrl: main.url,
      schedulingUrl: scheduling.url,
      handlers: [Recorder],
    });
    await eventually(ready);
  });

  afterEach(async () => {
    release();
    await stopGracefully(app);
  });

  afterAll(async () => {
    await Promise.all([neighbour.close(), probe.close()]);
    await Promise.all([main.drop(), scheduling.drop(), database.drop()]);
  });

  const ready = (): Promise<unknown> =>
    Promise.all(app.get(HealthRegistry).readinessChecks.map((readiness) => readiness.check()));

  const noted = (expected: string[]): Promise<void> =>
    eventually(async () => expect((await effects(database)).toSorted()).toEqual(expected.toSorted()));

  it('passes each message of a shared queue to its own handler', async () => {
    await neighbour.publish(TaskInstanceCompletedEvent, completedEvent());
    await neighbour.publish(BusinessUnitChangeV1, businessUnitChange());
    await noted(['completed 501', 'Activated 77']);
    await eventually(async () => expect(await probe.queue(QUEUE)).toMatchObject({ ready: 0 }));
  });

  it('keeps the two buses separate on two brokers', async () => {
    await app.get(MessagePublisher).publish(ScheduleCreatedNotification, {
      scheduleId: randomUUID(),
      facilityId: 501,
      name: 'Mow the lawn',
      schedule: '0 6 * * 1',
      timeZone: 'Europe/Berlin',
      createdAtUtc: '2026-01-05T10:00:00Z',
      createdBy: { personId: null, name: 'Ivy', persona: 1 },
    });
    await noted(['scheduled Mow the lawn']);
    expect(await main.management.queues()).not.toContain('suite.schedules');
    expect(await scheduling.management.queues()).not.toContain(QUEUE);
  });

  it('applies a message once, even if its copies arrive concurrently', async () => {
    const { body } = createEnvelope(TaskInstanceCompletedEvent, completedEvent(), {
      namespace: NAMESPACE,
      messageId: randomUUID(),
      sentAt: new Date('2026-01-05T10:00:00Z'),
    });
    const properties = { content_type: 'application/vnd.masstransit+json' };
    const copies = Array.from({ length: 5 }, () =>
      main.management.publish(COMPLETED_EXCHANGE, { body, properties }),
    );
    await Promise.all(copies);
    await neighbour.publish(BusinessUnitChangeV1, businessUnitChange({ businessUnitId: 1 }));
    await noted(['completed 501', 'Activated 1']);
    await eventually(async () => expect(await probe.queue(QUEUE)).toMatchObject({ ready: 0 }));
    expect(await probe.queue(`${QUEUE}_error`)).toMatchObject({ ready: 0 });
    expect(await effects(database)).toHaveLength(2);
    const metrics = await eventually(async () => {
      const text = await app.get(Metrics).registry.metrics();
      expect(text).toContain(
        `messaging_duplicates_total{queue="${QUEUE}",message="TaskInstanceCompletedEvent"} 4`,
      );
      return text;
    });
    expect(metrics).toContain(`messaging_errored_total{queue="${QUEUE}",reason="failed"} 0`);
  });

  it('refuses another message under an applied id, and recognises the same message with reordered members', async () => {
    const messageId = randomUUID();
    const event = completedEvent({ facilityId: 503 });
    await neighbour.publish(TaskInstanceCompletedEvent, event, { messageId });
    await noted(['completed 503']);
    const sendRaw = (message: object) =>
      main.management.publish(COMPLETED_EXCHANGE, {
        body: JSON.stringify(message),
        properties: { content_type: 'application/json', message_id: messageId },
      });
    await sendRaw(Object.fromEntries(Object.entries(event).reverse()));
    await sendRaw({ ...event, facilityId: 504 });
    const [refused] = await eventually(async () => {
      const messages = await main.management.get(`${QUEUE}_error`, 10);
      expect(messages).toHaveLength(1);
      return messages;
    });
    expect(JSON.parse(refused?.body ?? '')).toMatchObject({ facilityId: 504 });
    expect(refused?.headers).toMatchObject({
      'x-error-reason': 'invalid',
      'MT-Fault-Message': expect.stringContaining('belongs to another message'),
    });
    expect(await effects(database)).toEqual(['completed 503']);
    // A row of release 1.0.0 has no hash, so another message under its id counts as a repetition.
    await database.query('UPDATE messaging.inbox SET content_hash = NULL');
    await sendRaw({ ...event, facilityId: 505 });
    await neighbour.publish(BusinessUnitChangeV1, businessUnitChange({ businessUnitId: 2 }));
    await noted(['completed 503', 'Activated 2']);
  });

  it("rolls back a failing handler's writes and its inbox row", async () => {
    await neighbour.publish(TaskInstanceCompletedEvent, completedEvent({ facilityId: 666 }));
    await eventually(async () => expect(await main.management.get(`${QUEUE}_error`, 1)).toHaveLength(1));
    expect(await effects(database)).toEqual([]);
    expect(await database.query('SELECT 1 FROM messaging.inbox')).toEqual([]);
  });

  it('selects the handler of raw JSON at a shared queue by its exchange', async () => {
    const message = {
      body: JSON.stringify(completedEvent({ facilityId: 502 })),
      properties: { content_type: 'application/json' },
    };
    await main.management.publish(COMPLETED_EXCHANGE, message);
    await noted(['completed 502']);
  });

  it('has an inbox table that matches its entity', async () => {
    const { upQueries } = await app.get(DataSource).driver.createSchemaBuilder().log();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
  });

  it('purges messages applied more than 30 days ago, and only those', async () => {
    await database.query(`
      INSERT INTO messaging.inbox (queue, message_id, message_name, applied_at)
      VALUES ('q', 'old', 'm', now() - interval '31 days'), ('q', 'recent', 'm', now() - interval '29 days')`);
    await new InboxRepository(app.get(DataSource)).purge(30);
    expect(await database.query('SELECT message_id FROM messaging.inbox')).toEqual([
      { message_id: 'recent' },
    ]);
  });

  it('purges a long backlog in batches of at most 10,000 rows', async () => {
    await database.query(`
      CREATE FUNCTION messaging.refuse_large() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM gone) > 10000 THEN RAISE 'too many at once'; END IF; RETURN NULL; END $$`);
    await database.query(`
      CREATE TRIGGER refuse_large AFTER DELETE ON messaging.inbox REFERENCING OLD TABLE AS gone
        FOR EACH STATEMENT EXECUTE FUNCTION messaging.refuse_large()`);
    await database.query(`
      INSERT INTO messaging.inbox (queue, message_id, message_name, applied_at)
      SELECT 'q', 'old ' || n, 'm', now() - interval '31 days' FROM generate_series(1, 20001) AS n`);
    await new InboxRepository(app.get(DataSource)).purge(30);
    expect(await database.query(`SELECT 1 FROM messaging.inbox WHERE queue = 'q'`)).toEqual([]);
    await database.query('DROP TRIGGER refuse_large ON messaging.inbox');
  });

  it('finishes the delivery in process before it stops, and accepts no new one', async () => {
    inProcess = 0;
    held = new Promise((resolve) => {
      release = resolve;
    });
    await neighbour.publish(TaskInstanceCompletedEvent, completedEvent());
    await eventually(() => expect(inProcess).toBe(1));
    const stopping = stopGracefully(app);
    await eventually(() => expect(ready()).rejects.toThrow(`queue ${QUEUE} is not consumed`));
    await neighbour.publish(BusinessUnitChangeV1, businessUnitChange());
    release();
    await stopping;
    expect(await effects(database)).toEqual(['completed 501']);
    await eventually(async () => expect(await probe.queue(QUEUE)).toMatchObject({ ready: 1 }));
  });
});
