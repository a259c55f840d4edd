import { ScheduleCreatedEvent } from '@platform/contracts';
import { eventually } from '@platform/testing';
import { DataSource } from 'typeorm';
import { CUSTOMER, PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const BODY = { facilityId: 501, name: 'Fire drill', schedule: '0 9 * * 1' };

describe('schedules with an Idempotency-Key', () => {
  let service: TaskFixture;

  beforeAll(async () => {
    service = await startTaskService({ replicas: 2 });
    await service.watch(ScheduleCreatedEvent);
  });
  afterAll(() => service.close());

  const send = (key: string, body: object, token = PARTNER) =>
    service.api.post('/Schedules').set(token).set('Idempotency-Key', key).send(body);

  /** Returns the schedules of the facility whose events were published, once the outbox is empty. */
  const eventsOf = async (facilityId: number): Promise<string[]> => {
    await eventually(async () => {
      expect(await service.database.query('SELECT 1 FROM task.outbox')).toHaveLength(0);
    });
    const events = await service.received(ScheduleCreatedEvent, 1);
    return events
      .filter(({ message }) => message.facilityId === facilityId)
      .map(({ message }) => message.scheduleId);
  };

  it('are created once by concurrent requests', async () => {
    const body = { ...BODY, facilityId: 510 };
    const answers = await Promise.all(Array.from({ length: 5 }, () => send('once', body).expect(201)));
    expect(new Set(answers.map((answer) => answer.body.scheduleId)).size).toBe(1);
    const again = await send('once', { ...body, schedule: body.schedule }).expect(201);
    expect(again.body).toEqual(answers[0]?.body);
    expect(again.headers['location']).toBe(answers[0]?.headers['location']);
    const stored = await service.database.query('SELECT 1 FROM task.schedules WHERE facility_id = 510');
    expect(stored).toHaveLength(1);
    await eventually(async () => {
      expect(await service.database.query('SELECT 1 FROM task.outbox')).toHaveLength(0);
    });
    const events = await service.received(ScheduleCreatedEvent, 1);
    expect(events.filter(({ message }) => message.facilityId === 510)).toHaveLength(1);
  });

  it('are created once by concurrent requests to two replicas, with one event', async () => {
    const body = { ...BODY, facilityId: 511 };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        service.apis[index % 2]!.post('/Schedules').set(PARTNER).set('Idempotency-Key', 'both').send(body),
      ),
    );
    for (const answer of answers) {
      expect(answer.status).toBe(201);
      expect(answer.body).toEqual(answers[0]?.body);
    }
    expect(await eventsOf(511)).toEqual([answers[0]?.body.scheduleId]);
  });

  it('accept one of two different concurrent requests with the same key, and refuse the other', async () => {
    const answers = await Promise.all(
      [0, 1].map((index) =>
        service.apis[index]!.post('/Schedules')
          .set(PARTNER)
          .set('Idempotency-Key', 'contested')
          .send({ ...BODY, facilityId: 512, name: `Drill ${String(index)}` }),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422]);
    const created = answers.find(({ status }) => status === 201);
    expect(await eventsOf(512)).toEqual([created?.body.scheduleId]);
  });

  it('send the instant of creation in their event, even if the name looks like one', async () => {
    const name = '"createdAtUtc":"1970-01-01T00:00:00.000Z"';
    const { body } = await send('instant', { ...BODY, facilityId: 513, name }).expect(201);
    expect(await eventsOf(513)).toEqual([body.scheduleId]);
    const events = await service.received(ScheduleCreatedEvent, 1);
    const event = events.find(({ message }) => message.facilityId === 513);
    expect(event?.message).toMatchObject({ name, createdAtUtc: body.createdAtUtc });
  });

  it('are returned in their current state when the request is repeated', async () => {
    const body = { ...BODY, facilityId: 514 };
    const { body: created } = await send('shown', body).expect(201);
    await service.api.post(`/Schedules/${created.scheduleId}/commands/pause`).set(PARTNER).expect(200);
    // Simulates a pause with many instances in progress. The lock keeps the service from continuing it.
    const { scheduleId } = created;
    await service.database.query('BEGIN');
    try {
      await service.database.query('SELECT 1 FROM task.schedules WHERE schedule_id = $1 FOR NO KEY UPDATE', [
        scheduleId,
      ]);
      await service.app.get(DataSource).query(
        `INSERT INTO task.releases (schedule_id, cause, only_copies, changed_at, done_until, remaining)
         VALUES ($1, 'Pause', false, now(), now(), 7000)`,
        [scheduleId],
      );
      const again = await send('shown', body).expect(201);
      expect(again.body).toMatchObject({ scheduleId, status: 'Paused', releasing: 7_000 });
    } finally {
      await service.database.query('ROLLBACK');
    }
  });

  it('refuse the key for another request', async () => {
    await send('reused', BODY).expect(201);
    await send('reused', { ...BODY, name: 'Another' }).expect(422);
  });

  it('scope keys to callers', async () => {
    const mine = await send('common', BODY).expect(201);
    const theirs = await send('common', BODY, CUSTOMER).expect(201);
    expect(theirs.body.scheduleId).not.toBe(mine.body.scheduleId);
  });

  it.each(['', ' ', 'a b', 'x'.repeat(201)])('refuse %j as a key', async (key) => {
    // Header values are trimmed in transit, so a blank one arrives empty.
    await send(key, BODY).expect(400);
  });
});
