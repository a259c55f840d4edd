import type { ScheduleRecurringTaskInstanceGenerationRequest } from '@platform/contracts';
import { errorQueue, retryQueue, skippedQueue } from '@platform/messaging';
import { eventually } from '@platform/testing';
import type { QueueDeclaration } from '@platform/testing';
import { BUS_OF_QUEUE, QUEUES } from '../src/recurring-generation/queues';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** Queue arguments that RabbitMQ 4 refuses or ignores. Source: decision 0016. */
const REMOVED_ARGUMENTS = ['x-queue-mode', 'x-queue-version', 'x-queue-master-locator', 'x-ha-policy'];
/** Smallest maximum frame size that RabbitMQ 4.1 and later accept, in bytes. */
const LEAST_FRAME_BYTES = 8_192;

describe('the broker declarations and connection settings of the running service', () => {
  let service: TaskFixture;
  let queues: QueueDeclaration[];

  beforeAll(async () => {
    service = await startTaskService();
    // Sends a request over the bus, so that the reply queue exists.
    const body = { facilityId: 501 } satisfies ScheduleRecurringTaskInstanceGenerationRequest;
    await service.api
      .post('/commands/scheduleRecurringTaskInstanceGeneration')
      .set(PARTNER)
      .send(body)
      .expect(200);
    const { main, scheduling } = service.brokers;
    queues = [
      ...(await main.management.queueDeclarations()),
      ...(await scheduling.management.queueDeclarations()),
    ];
  });
  afterAll(() => service.close());

  it('use durable quorum queues with an explicit delivery limit for messages', () => {
    const names = Object.values(QUEUES).flatMap((queue) => [queue, errorQueue(queue), skippedQueue(queue)]);
    const waits = [5_000, 30_000, 60_000, 180_000, 300_000];
    names.push(...waits.map((delayMs) => retryQueue(QUEUES.businessUnitChange, delayMs)));
    const found = queues.filter(({ name }) => names.includes(name));
    expect(found.map(({ name }) => name).sort()).toEqual([...names].sort());
    for (const queue of found) {
      expect(queue).toMatchObject({ durable: true, exclusive: false });
      expect(queue.arguments).toMatchObject({
        'x-queue-type': 'quorum',
        'x-delivery-limit': expect.any(Number),
      });
    }
  });

  it('dead-letter at least once, to queues that exist', () => {
    const deadLettering = queues.filter((queue) => 'x-dead-letter-routing-key' in queue.arguments);
    expect(deadLettering.length).toBeGreaterThanOrEqual(Object.keys(BUS_OF_QUEUE).length);
    for (const { arguments: args } of deadLettering) {
      expect(args).toMatchObject({
        'x-dead-letter-exchange': '',
        'x-dead-letter-strategy': 'at-least-once',
        'x-overflow': 'reject-publish',
      });
      expect(queues.map(({ name }) => name)).toContain(args['x-dead-letter-routing-key']);
    }
  });

  it('include one replicated reply queue, which expires by itself', () => {
    const replies = queues.filter(({ name }) => name.includes('.replies.'));
    expect(replies).toHaveLength(1);
    expect(replies[0]).toMatchObject({
      durable: true,
      exclusive: false,
      arguments: { 'x-queue-type': 'quorum', 'x-expires': expect.any(Number) },
    });
  });

  it('include no other queues, no shared transient queues, and no removed arguments', () => {
    const prefixes = [...Object.values(QUEUES), 'task-service.replies.'];
    for (const { name, durable, exclusive, arguments: args } of queues) {
      expect([name, prefixes.some((prefix) => name.startsWith(prefix))]).toEqual([name, true]);
      expect([name, durable || exclusive]).toEqual([name, true]);
      expect(Object.keys(args).filter((argument) => REMOVED_ARGUMENTS.includes(argument))).toEqual([]);
    }
  });

  it('limit the prefetch per consumer, and negotiate large frames', async () => {
    for (const { management } of Object.values(service.brokers)) {
      const { connections, consumers } = await eventually(async () => {
        const settings = await management.clientSettings();
        expect(settings.connections.length).toBeGreaterThan(0);
        expect(settings.consumers.length).toBeGreaterThan(0);
        return settings;
      });
      for (const connection of connections)
        expect(connection.frame_max).toBeGreaterThanOrEqual(LEAST_FRAME_BYTES);
      for (const consumer of consumers) expect(consumer.prefetch_count).toBeGreaterThan(0);
    }
  });
});
