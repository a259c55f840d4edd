import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestBroker, eventually } from '@platform/testing';
import type { TestBroker } from '@platform/testing';
import {
  completionReceiverConfig,
  createCompletionReceiver,
} from '../src/completions/completion-receiver.neighbour';
import { createCustomers, customersConfig } from '../src/customers/customers.neighbour';
import type { Neighbour } from '../src/neighbour/run-neighbour';
import { createScheduling, schedulingConfig } from '../src/scheduling/scheduling.neighbour';

interface Entry {
  id: string;
  record: unknown;
}

interface Events {
  scheduleCreated: Entry[];
  scheduledMessages: Entry[];
  duplicates: number;
}

interface Completions {
  completions: Entry[];
  total: number;
}

const exchange = (name: string): string => `Platform.Contracts:${name}`;

describe('neighbours on the buses', () => {
  let broker: TestBroker;
  let folder: string;
  const running: Neighbour[] = [];

  beforeEach(async () => {
    broker = await createTestBroker();
    folder = await mkdtemp(join(tmpdir(), 'neighbours-'));
  });

  afterEach(async () => {
    for (const neighbour of running.splice(0)) await stop(neighbour);
    await broker.drop();
    await rm(folder, { recursive: true, force: true });
  });

  function variables(): Record<string, string> {
    return {
      LOG_LEVEL: 'silent',
      RABBITMQ_MAIN_URL: broker.url,
      RABBITMQ_SCHEDULING_URL: broker.url,
      STATE_DIRECTORY: folder,
    };
  }

  const start = {
    customers: async () => keep(await createCustomers(customersConfig.parse(variables()))),
    scheduling: async () => keep(await createScheduling(schedulingConfig.parse(variables()))),
    receiver: async () => keep(await createCompletionReceiver(completionReceiverConfig.parse(variables()))),
  };

  function keep(neighbour: Neighbour): Neighbour {
    running.push(neighbour);
    return neighbour;
  }

  async function stop(neighbour: Neighbour): Promise<void> {
    neighbour.markStopping();
    await neighbour.server.close();
    await neighbour.release();
  }

  async function restart(neighbour: Neighbour, again: () => Promise<Neighbour>): Promise<Neighbour> {
    running.splice(running.indexOf(neighbour), 1);
    await stop(neighbour);
    return again();
  }

  async function get<T = unknown>(neighbour: Neighbour, url: string): Promise<T> {
    const answer = await neighbour.server.inject({ url, headers: { authorization: 'Bearer any' } });
    expect(answer.statusCode).toBe(200);
    return answer.json<T>();
  }

  function publish(name: string, message: object, messageId: string): Promise<boolean> {
    return broker.management.publish(exchange(name), {
      body: JSON.stringify(message),
      properties: { content_type: 'application/json', message_id: messageId },
    });
  }

  function scheduleCreated(): Record<string, unknown> & { scheduleId: string } {
    return {
      scheduleId: randomUUID(),
      facilityId: 501,
      name: 'Check the boiler',
      schedule: '0 7 * * *',
      timeZone: 'Europe/Berlin',
      createdAtUtc: '2026-01-05T10:00:00Z',
      createdBy: { personId: 1001, name: 'Carl Customer', persona: 2 },
    };
  }

  function completed(): Record<string, unknown> & { taskInstanceId: string } {
    return {
      taskInstanceId: randomUUID(),
      scheduleId: randomUUID(),
      facilityId: 502,
      dueAtUtc: '2026-01-05T07:00:00Z',
      completedAtUtc: '2026-01-05T10:00:00Z',
      completedBy: { personId: null, name: 'Ivy Internal', persona: 1 },
    };
  }

  describe('customers', () => {
    it('answers the lookups only to a caller with a bearer token', async () => {
      const customers = await start.customers();
      expect(await get(customers, '/business-units?plt=PLT-77')).toBe(77);
      expect(await get(customers, '/business-units/77/facility-access')).toEqual([501, 502]);
      expect(await get(customers, '/facilities/501')).toMatchObject({ facilityId: 501 });
      expect((await customers.server.inject('/business-units/77/facility-access')).statusCode).toBe(401);
    });

    it.each(['/business-units/1', '/business-units?plt=PLT-1', '/facilities/1', '/nowhere'])(
      'answers 404 as a problem for %s',
      async (url) => {
        const customers = await start.customers();
        const answer = await customers.server.inject({ url, headers: { authorization: 'Bearer any' } });
        expect(answer.statusCode).toBe(404);
        expect(answer.headers['content-type']).toContain('application/problem+json');
      },
    );

    it('publishes an activation as IBusinessUnitChangeV1 and remembers it across a restart', async () => {
      await broker.management.bindQueue(exchange('IBusinessUnitChangeV1'), 'seen');
      const customers = await start.customers();
      const answer = await customers.server.inject({ method: 'POST', url: '/business-units/77/activate' });
      expect(answer.statusCode).toBe(202);
      const [message] = await broker.management.get('seen', 10);
      const envelope = JSON.parse(message?.body ?? '');
      expect(envelope.message).toEqual({
        eventId: answer.json().eventId,
        occurredAtUtc: expect.any(String),
        businessUnitId: 77,
        facilityIds: [501, 502],
        changeType: 'Activated',
        timeZone: 'Europe/Berlin',
      });
      expect(envelope.messageId).toBe(envelope.message.eventId);

      const again = await restart(customers, start.customers);
      expect(await get(again, '/business-units/77')).toMatchObject({ status: 'Active' });
    });

    it('answers 503 and changes nothing while nobody takes the change', async () => {
      const customers = await start.customers();
      const answer = await customers.server.inject({ method: 'POST', url: '/business-units/77/activate' });
      expect(answer.statusCode).toBe(503);
      expect(await get(customers, '/business-units/77')).toMatchObject({ status: 'Inactive' });
    });
  });

  describe('scheduling', () => {
    it('passes a schedule on to the scheduling bus and lists it', async () => {
      await broker.management.bindQueue(exchange('IScheduleCreatedEvent'), 'seen');
      const scheduling = await start.scheduling();
      const event = scheduleCreated();
      await publish('ScheduleCreatedEvent', event, randomUUID());
      const { scheduleCreated: listed } = await eventually(async () => {
        const events = await get<Events>(scheduling, `/events?scheduleId=${event.scheduleId}`);
        expect(events.scheduleCreated).toHaveLength(1);
        return events;
      });
      expect(listed[0]?.record).toEqual(event);
      const [passedOn] = await broker.management.get('seen', 10);
      expect(JSON.parse(passedOn?.body ?? '').message).toEqual(event);
    });

    it('passes a redelivered event on under the same message id, also after a restart', async () => {
      await broker.management.bindQueue(exchange('IScheduleCreatedEvent'), 'seen');
      let scheduling = await start.scheduling();
      const [event, messageId] = [scheduleCreated(), randomUUID()];
      await publish('ScheduleCreatedEvent', event, messageId);
      await eventually(async () =>
        expect((await get<Events>(scheduling, '/events')).scheduleCreated).toHaveLength(1),
      );
      scheduling = await restart(scheduling, start.scheduling);
      await publish('ScheduleCreatedEvent', event, messageId);
      await eventually(async () => expect((await get<Events>(scheduling, '/events')).duplicates).toBe(1));
      const passedOn = await broker.management.get('seen', 10);
      expect(new Set(passedOn.map(({ properties }) => properties['message_id'])).size).toBe(1);
      expect((await get<Events>(scheduling, '/events')).scheduleCreated).toHaveLength(1);
    });

    it('keeps an event that cannot be passed on yet and tries again', async () => {
      const scheduling = await start.scheduling();
      await publish('ScheduleCreatedEvent', scheduleCreated(), randomUUID());
      // Nobody is bound to the scheduling bus: the broker returns the message and the event waits in its retry queue.
      await eventually(async () => {
        const queues = await broker.management.queues();
        expect(queues.filter((queue) => queue.includes('schedule-created')).length).toBeGreaterThan(1);
      });
      await broker.management.bindQueue(exchange('IScheduleCreatedEvent'), 'seen');
      await eventually(async () =>
        expect((await get<Events>(scheduling, '/events')).scheduleCreated).toHaveLength(1),
      );
    });

    it('lists the scheduled messages it heard of', async () => {
      const scheduling = await start.scheduling();
      const event = { subsystemName: 'tasks', messageName: 'm', description: 'd', schedule: '0 5 * * *' };
      await publish('ScheduledMessageEvent', event, randomUUID());
      await eventually(async () =>
        expect((await get<Events>(scheduling, '/events')).scheduledMessages[0]?.record).toEqual(event),
      );
    });
  });

  describe('completion receiver', () => {
    it('lists each completion once, however often it came, and across a restart', async () => {
      let receiver = await start.receiver();
      const [first, second, messageId] = [completed(), completed(), randomUUID()];
      for (let delivery = 0; delivery < 3; delivery += 1)
        await publish('TaskInstanceCompletedEvent', first, messageId);
      await publish('TaskInstanceCompletedEvent', second, randomUUID());
      await eventually(async () =>
        expect(await get(receiver, '/completions')).toMatchObject({ total: 2, duplicates: 2 }),
      );
      receiver = await restart(receiver, start.receiver);
      const { completions } = await get<Completions>(
        receiver,
        `/completions?taskInstanceId=${first.taskInstanceId}`,
      );
      expect(completions).toHaveLength(1);
      expect(completions[0]).toMatchObject({ id: messageId, record: first });
      const lines = (await readFile(join(folder, 'completions.jsonl'), 'utf8')).trim().split('\n');
      expect(lines).toHaveLength(2);
    });

    it('is ready only as long as it consumes', async () => {
      const receiver = await start.receiver();
      expect((await receiver.server.inject('/health/ready')).statusCode).toBe(200);
      receiver.markStopping();
      expect((await receiver.server.inject('/health/ready')).statusCode).toBe(503);
    });
  });
});
