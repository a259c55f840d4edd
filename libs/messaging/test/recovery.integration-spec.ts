import { type INestApplicationContext, Injectable } from '@nestjs/common';
import { connect } from 'amqplib';
import {
  TaskInstanceCompletedEvent,
  TaskInstanceGenerationRequested,
  UnscheduleRecurringTaskInstanceGenerationRequest as UnscheduleRequest,
} from '@platform/contracts';
import { DatabaseUnavailableError } from '@platform/database';
import { HealthRegistry } from '@platform/service-defaults';
import {
  startPrivateRabbitmq,
  TcpProxy,
  createTestBroker,
  eventually,
  type TestBroker,
  type TestDatabase,
} from '@platform/testing';
import {
  BusUnavailableError,
  type ConsumeContext,
  Consume,
  connectBus,
  MessagePublisher,
  MessageReturnedError,
  type PlainBus,
  PublishTimeoutError,
  RequestClient,
  retryQueue,
} from '../src/index';
import { BrokerProbe } from './broker-probe';
import { completedEvent } from './messages';
import { createInboxDatabase, effects, SILENT, startMessagingApp, stopGracefully } from './messaging-app';

const QUEUE = 'recovery.completed';
const NEEDS_DATABASE = -1;
let isDatabaseGone = false;
const MESSAGES = 300;

@Injectable()
class Recorder {
  @Consume(TaskInstanceCompletedEvent, { queue: QUEUE })
  async onCompleted(
    { facilityId }: TaskInstanceCompletedEvent,
    { transaction }: ConsumeContext,
  ): Promise<void> {
    if (facilityId === NEEDS_DATABASE && isDatabaseGone) throw new DatabaseUnavailableError('no database');
    await transaction.query('INSERT INTO effects (note) VALUES ($1)', [String(facilityId)]);
  }
}

describe('recovery', () => {
  let broker: TestBroker;
  let database: TestDatabase;
  let proxy: TcpProxy;
  let app: INestApplicationContext;
  let neighbour: PlainBus;
  let probe: BrokerProbe;

  const ready = (): Promise<unknown> =>
    Promise.all(app.get(HealthRegistry).readinessChecks.map((readiness) => readiness.check()));
  const publish = (facilityId: number): Promise<void> =>
    app.get(MessagePublisher).publish(TaskInstanceCompletedEvent, completedEvent({ facilityId }));

  beforeEach(async () => {
    [broker, database] = await Promise.all([createTestBroker(), createInboxDatabase()]);
    proxy = await TcpProxy.start(broker.url);
    app = await startMessagingApp({ databaseUrl: database.url, mainUrl: proxy.url, handlers: [Recorder] });
    neighbour = await connectBus({ url: broker.url, name: 'neighbour', logger: SILENT });
    probe = await BrokerProbe.connect(broker.url);
    await eventually(ready);
  });

  afterEach(async () => {
    await stopGracefully(app);
    await Promise.all([neighbour.close(), probe.close(), proxy.stop()]);
    await Promise.all([broker.drop(), database.drop()]);
  });

  it('neither loses nor duplicates a message when every connection is closed during the flow', async () => {
    const downs: string[] = [];
    const sender = await connectBus({
      url: broker.url,
      name: 'sender',
      logger: { ...SILENT, warn: (line: string) => downs.push(line) },
    });
    // The broker can close a connection only once it lists the connection, which takes up to 5 s after the
    // connection has opened.
    await eventually(async () => {
      const { connections } = await broker.management.clientSettings();
      expect(connections.map(({ user_provided_name }) => user_provided_name)).toContain('sender (main)');
    });
    const closings: Promise<void>[] = [];
    for (let sent = 0; sent < MESSAGES; sent += 1) {
      const event = completedEvent({ facilityId: sent });
      const options = { messageId: event.taskInstanceId };
      if (sent % 50 === 0) closings.push(broker.management.closeConnections());
      // An unconfirmed message is sent again with the same id, as an outbox does.
      await eventually(() => sender.publish(TaskInstanceCompletedEvent, event, options), {
        timeoutMs: 20_000,
      });
      if (sent % 100 === 99) {
        await proxy.refuse();
        await proxy.restore();
      }
    }
    await Promise.all(closings);
    expect(downs).not.toEqual([]);
    await sender.close();
    const expected = Array.from({ length: MESSAGES }, (_, facilityId) => String(facilityId)).toSorted();
    await eventually(async () => expect((await effects(database)).toSorted()).toEqual(expected), {
      timeoutMs: 20_000,
    });
    await eventually(ready);
  });

  it("delivers a lost consumer's messages to the next one first at a single-active-consumer queue", async () => {
    const options = { queue: 'recovery.ordered', singleActiveConsumer: true };
    const lost = await connectBus({ url: proxy.url, name: 'lost', logger: SILENT });
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const heard: number[] = [];
    await lost.consume(TaskInstanceCompletedEvent, options, () => held);
    await neighbour.consume(TaskInstanceCompletedEvent, options, ({ facilityId }) => {
      heard.push(facilityId);
      return Promise.resolve();
    });
    const sent = Array.from({ length: 25 }, (_, index) => index + 1);
    for (const facilityId of sent) await publish(facilityId);
    await eventually(async () => expect(await probe.queue(options.queue)).toMatchObject({ ready: 15 }));
    expect(heard).toEqual([]);
    await proxy.refuse();
    await eventually(() => expect(heard).toEqual(sent));
    release();
    await lost.close();
  });

  it('subscribes again after its queue was deleted', async () => {
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    await channel.deleteQueue(QUEUE);
    await eventually(async () => expect(await probe.queue(QUEUE)).toEqual({ ready: 0, consumers: 1 }));
    await connection.close();
    await publish(1);
    await eventually(async () => expect(await effects(database)).toEqual(['1']));
  });

  it('keeps trying while its queue cannot be declared, and still publishes', async () => {
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    await channel.deleteQueue(QUEUE);
    // Another client declares the queue with other arguments, so our declaration now closes our channel.
    await channel.assertQueue(QUEUE, { durable: true, arguments: { 'x-queue-type': 'classic' } });
    await eventually(() => expect(ready()).rejects.toThrow(/is not consumed/));
    await publish(1);
    const requested = app
      .get(RequestClient)
      .request(UnscheduleRequest, { facilityId: 1 }, { timeoutMs: 9_000 });
    await expect(requested).rejects.toThrow(MessageReturnedError);
    await channel.deleteQueue(QUEUE);
    await connection.close();
    await eventually(ready);
    await publish(2);
    await eventually(async () => expect(await effects(database)).toEqual(['2']));
  });

  it('fails publishes and requests at once while the broker is unavailable, and recovers with it', async () => {
    await publish(1);
    await proxy.refuse();
    await eventually(() => expect(ready()).rejects.toThrow(/not connected/));
    const startedAtMs = performance.now();
    await expect(publish(2)).rejects.toThrow(BusUnavailableError);
    const requested = app
      .get(RequestClient)
      .request(UnscheduleRequest, { facilityId: 1 }, { timeoutMs: 5_000 });
    await expect(requested).rejects.toThrow(BusUnavailableError);
    expect(performance.now() - startedAtMs).toBeLessThan(1_000);
    await neighbour.publish(TaskInstanceCompletedEvent, completedEvent({ facilityId: 3 }));
    await proxy.restore();
    await eventually(ready);
    await eventually(() => publish(4));
    await eventually(async () => expect((await effects(database)).toSorted()).toEqual(['1', '3', '4']));
  });

  it('does not publish while the broker blocks the connection because memory or disk is low', async () => {
    await publish(1);
    proxy.inject(connectionFrame(60, 'low on memory'));
    await eventually(() => expect(publish(2)).rejects.toThrow(/blocked, low on memory/));
    await expect(ready()).rejects.toThrow(/not connected/);
    proxy.inject(connectionFrame(61));
    await eventually(() => publish(3));
    await eventually(async () => expect(await effects(database)).toContain('3'));
  });

  it('gives up on a silent broker in time', async () => {
    await publish(1);
    proxy.freeze();
    const options = { timeoutMs: 300 };
    const published = app
      .get(MessagePublisher)
      .publish(TaskInstanceCompletedEvent, completedEvent(), options);
    await expect(published).rejects.toThrow(PublishTimeoutError);
    await proxy.refuse();
    await proxy.restore();
    await eventually(ready);
  });

  it('starts without a broker and consumes as soon as there is one', async () => {
    await stopGracefully(app);
    await proxy.refuse();
    app = await startMessagingApp({ databaseUrl: database.url, mainUrl: proxy.url, handlers: [Recorder] });
    await expect(ready()).rejects.toThrow(/not connected/);
    await neighbour.publish(TaskInstanceCompletedEvent, completedEvent({ facilityId: 7 }));
    await proxy.restore();
    await eventually(async () => expect(await effects(database)).toEqual(['7']));
  });

  it('receives a response that was sent while its connection was lost', async () => {
    let respond: () => void = () => undefined;
    const mayRespond = new Promise<void>((resolve) => {
      respond = resolve;
    });
    await neighbour.respond(UnscheduleRequest, { queue: 'recovery.unschedule' }, async ({ facilityId }) => {
      await mayRespond;
      return { succeeded: { facilityId, removed: true } };
    });
    const requested = app
      .get(RequestClient)
      .request(UnscheduleRequest, { facilityId: 5 }, { timeoutMs: 15_000 });
    await eventually(async () =>
      expect(await probe.queue('recovery.unschedule')).toMatchObject({ ready: 0 }),
    );
    await eventually(() => expect(neighbour.isReady()).toBe(true));
    await proxy.refuse();
    respond();
    await proxy.restore();
    await expect(requested).resolves.toEqual({ succeeded: { facilityId: 5, removed: true } });
  });

  it('warns with the name of its reply queue when that has no consumer', async () => {
    const lines: string[] = [];
    const logger = { ...SILENT, warn: (line: string) => lines.push(line) };
    const requester = await connectBus({ url: broker.url, name: 'requester', logger });
    await neighbour.respond(UnscheduleRequest, { queue: 'recovery.unschedule' }, ({ facilityId }) =>
      Promise.resolve({ succeeded: { facilityId, removed: true } }),
    );
    const request = (): Promise<unknown> =>
      requester.request(UnscheduleRequest, { facilityId: 5 }, { timeoutMs: 5_000 });
    await request();
    const queues = await broker.management.queues();
    const replies = queues.find((name) => name.startsWith('requester.replies.'))!;
    const connection = await connect(broker.url);
    const channel = await connection.createChannel();
    await channel.deleteQueue(replies);
    await channel.assertQueue(replies, { durable: true, arguments: { 'x-queue-type': 'classic' } });
    const warning = expect.stringContaining(`consumer of ${replies}: the queue is not consumed`);
    await eventually(() => expect(lines).toContainEqual(warning), { timeoutMs: 10_000 });
    expect(requester.isReady()).toBe(false);
    await channel.deleteQueue(replies);
    await connection.close();
    await eventually(() => expect(requester.isReady()).toBe(true));
    await request();
    await requester.close();
  });

  it('fails when a message that needs a receiver is routed to no queue', async () => {
    const requested = {
      facilityId: 1,
      scheduledFireTimeUtc: '2026-01-05T10:00:00Z',
      fireTimeUtc: '2026-01-05T10:00:00Z',
      misfired: false,
      missedCount: 0,
    };
    const published = app.get(MessagePublisher).publish(TaskInstanceGenerationRequested, requested);
    await expect(published).rejects.toThrow(MessageReturnedError);
  });

  it('postpones a message, without counting an attempt, while the database is unavailable', async () => {
    isDatabaseGone = true;
    await publish(NEEDS_DATABASE);
    await eventually(async () =>
      expect(await probe.queue(retryQueue(QUEUE, 1_000))).toMatchObject({ ready: 1 }),
    );
    const [postponed] = await broker.management.get(retryQueue(QUEUE, 1_000), 1);
    expect(postponed?.headers).toMatchObject({ 'x-retry-attempts': 0, 'x-outage-postponements': 1 });
    await publish(NEEDS_DATABASE);
    await eventually(async () =>
      expect(await probe.queue(retryQueue(QUEUE, 1_000))).toMatchObject({ ready: 1 }),
    );
    isDatabaseGone = false;
    await eventually(async () => expect(await effects(database)).toEqual(['-1']), { timeoutMs: 2_000 });
    expect(await probe.queue(`${QUEUE}_error`)).toMatchObject({ ready: 0 });
  });
});

/**
 * Returns a frame of AMQP's class 10 (connection): method 60 is `blocked`, with the reason, and 61 is
 * `unblocked`.
 */
function connectionFrame(method: number, reason?: string): Buffer {
  const text = reason === undefined ? [] : [reason.length, ...Buffer.from(reason)];
  const payload = [0, 10, 0, method, ...text];
  return Buffer.from([1, 0, 0, 0, 0, 0, payload.length, ...payload, 0xce]);
}

describe('a broker that is killed as soon as a reply queue is declared', () => {
  let broker: Awaited<ReturnType<typeof startPrivateRabbitmq>>;
  let bus: PlainBus;
  beforeAll(async () => {
    broker = await startPrivateRabbitmq();
    bus = await connectBus({ url: broker.server.url, name: 'killed', logger: SILENT });
  }, 60_000);
  afterAll(async () => {
    await bus.close();
    await broker.stop();
  }, 60_000);

  it('may lose the queue, but requests continue with another one', async () => {
    // No queue receives the request. The broker says so only once there is a reply queue.
    const request = (): Promise<unknown> =>
      bus.request(UnscheduleRequest, { facilityId: 1 }, { timeoutMs: 5_000 });
    await expect(request()).rejects.toThrow(MessageReturnedError);
    await broker.server.end('SIGKILL');
    await broker.server.start();
    await eventually(() => expect(request()).rejects.toThrow(MessageReturnedError), { timeoutMs: 40_000 });
  }, 120_000);
});
