import { randomUUID } from 'node:crypto';
import { eventually } from '@platform/testing';
import { RunningNeighbours, exchange } from './running-neighbours';
import type { Entry } from './running-neighbours';

interface Events {
  scheduleCreated: Entry[];
  scheduledMessages: Entry[];
  duplicates: number;
}

describe('scheduling', () => {
  let neighbours: RunningNeighbours;

  beforeEach(async () => {
    neighbours = await RunningNeighbours.open();
  });

  afterEach(() => neighbours.close());

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

  it('passes a schedule on to the scheduling bus and lists it', async () => {
    await neighbours.broker.management.bindQueue(exchange('IScheduleCreatedEvent'), 'seen');
    const scheduling = await neighbours.scheduling();
    const event = scheduleCreated();
    await neighbours.publish('ScheduleCreatedEvent', event, randomUUID());
    const { scheduleCreated: listed } = await eventually(async () => {
      const events = await neighbours.get<Events>(scheduling, `/events?scheduleId=${event.scheduleId}`);
      expect(events.scheduleCreated).toHaveLength(1);
      return events;
    });
    expect(listed[0]?.record).toEqual(event);
    const [passedOn] = await neighbours.broker.management.get('seen', 10);
    expect(JSON.parse(passedOn?.body ?? '').message).toEqual(event);
  });

  it('passes a redelivered event on under the same message id, also after a restart', async () => {
    await neighbours.broker.management.bindQueue(exchange('IScheduleCreatedEvent'), 'seen');
    let scheduling = await neighbours.scheduling();
    const [event, messageId] = [scheduleCreated(), randomUUID()];
    await neighbours.publish('ScheduleCreatedEvent', event, messageId);
    await eventually(async () =>
      expect((await neighbours.get<Events>(scheduling, '/events')).scheduleCreated).toHaveLength(1),
    );
    await neighbours.stop(scheduling);
    scheduling = await neighbours.scheduling();
    await neighbours.publish('ScheduleCreatedEvent', event, messageId);
    await eventually(async () =>
      expect((await neighbours.get<Events>(scheduling, '/events')).duplicates).toBe(1),
    );
    const passedOn = await neighbours.broker.management.get('seen', 10);
    expect(new Set(passedOn.map(({ properties }) => properties['message_id'])).size).toBe(1);
    expect((await neighbours.get<Events>(scheduling, '/events')).scheduleCreated).toHaveLength(1);
  });

  it('retries an event that cannot be passed on yet', async () => {
    const scheduling = await neighbours.scheduling();
    await neighbours.publish('ScheduleCreatedEvent', scheduleCreated(), randomUUID());
    // No queue is bound on the scheduling bus, so the broker returns the message and the event waits in its
    // retry queue.
    await eventually(async () => {
      const queues = await neighbours.broker.management.queues();
      expect(queues.filter((queue) => queue.includes('schedule-created')).length).toBeGreaterThan(1);
    });
    await neighbours.broker.management.bindQueue(exchange('IScheduleCreatedEvent'), 'seen');
    await eventually(async () =>
      expect((await neighbours.get<Events>(scheduling, '/events')).scheduleCreated).toHaveLength(1),
    );
  });

  it('lists the scheduled messages it received', async () => {
    const scheduling = await neighbours.scheduling();
    const event = { subsystemName: 'tasks', messageName: 'm', description: 'd', schedule: '0 5 * * *' };
    await neighbours.publish('ScheduledMessageEvent', event, randomUUID());
    await eventually(async () =>
      expect((await neighbours.get<Events>(scheduling, '/events')).scheduledMessages[0]?.record).toEqual(
        event,
      ),
    );
  });
});
