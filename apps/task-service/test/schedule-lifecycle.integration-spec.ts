import { randomUUID } from 'node:crypto';
import {
  ScheduleCreatedEvent,
  SchedulePausedEvent,
  ScheduleRemovedEvent,
  ScheduleResumedEvent,
  ScheduleUpdatedEvent,
  TaskInstanceCancelledEvent,
  TaskInstanceCompletedEvent,
} from '@platform/contracts';
import { Persona } from '@platform/personas';
import { bearer, eventually } from '@platform/testing';
import { DataSource } from 'typeorm';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { CUSTOMER, OWNER, PARTNER, SERVICE_PROVIDER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const DAY_MS = 86_400_000;
const EVENTS = [
  ScheduleCreatedEvent,
  ScheduleUpdatedEvent,
  SchedulePausedEvent,
  ScheduleResumedEvent,
  ScheduleRemovedEvent,
  TaskInstanceCancelledEvent,
  TaskInstanceCompletedEvent,
];
let lastFacility = 20_000;

describe('the lifecycle of a schedule', () => {
  let service: TaskFixture;

  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));
  /** Creates a daily schedule in a facility of its own, and generates its instances. */
  const schedule = async (overrides: object = {}) => {
    lastFacility += 1;
    const body = { facilityId: lastFacility, name: 'Round', schedule: '0 9 * * *', ...overrides };
    const { body: created, headers } = await service.api
      .post('/Schedules')
      .set(PARTNER)
      .send(body)
      .expect(201);
    await generate(body.facilityId);
    return { id: created.scheduleId as string, facilityId: body.facilityId, etag: headers['etag'] as string };
  };
  const patch = (id: string, body: object, token = PARTNER) =>
    service.api.patch(`/Schedules/${id}`).set(token).send(body);
  const command = (id: string, name: string, token = PARTNER) =>
    service.api.post(`/Schedules/${id}/commands/${name}`).set(token);
  const cancel = (id: string, body?: object, token = PARTNER) =>
    service.api.post(`/Instances/${id}/commands/cancel`).set(token).send(body);
  interface Row {
    id: string;
    due: Date;
    status: string;
    cause: string | null;
    name: string;
    template: string | null;
  }
  const rows = (scheduleId: string) =>
    service.database.query<Row>(
      `SELECT task_instance_id AS id, due_at AS due, status, cancellation_cause AS cause, name, template
       FROM task.instances WHERE schedule_id = $1 ORDER BY due_at, status`,
      [scheduleId],
    );
  const pending = async (scheduleId: string) =>
    (await rows(scheduleId)).filter(({ status }) => status === 'Pending');
  const addOverdue = (id: string, facilityId: number) =>
    service.database.query(
      `INSERT INTO task.instances (schedule_id, facility_id, name, due_at) VALUES ($1, $2, 'Round', now() - interval '1 day')`,
      [id, facilityId],
    );
  /** Returns the published events of a facility in order, once its outbox is empty. */
  const events = async (facilityId: number) => {
    await eventually(async () => {
      const rest = await service.database.query('SELECT 1 FROM task.outbox WHERE facility_id = $1', [
        facilityId,
      ]);
      expect(rest).toHaveLength(0);
    });
    const messages = await service.brokers.main.management.get('test.life', 100_000);
    receivedEvents.push(...messages.map(({ body }) => JSON.parse(body) as ReceivedEvent));
    return receivedEvents.filter(({ message }) => message['facilityId'] === facilityId);
  };
  interface ReceivedEvent {
    messageType: string[];
    message: Record<string, unknown>;
  }
  const receivedEvents: ReceivedEvent[] = [];
  const names = (found: readonly ReceivedEvent[]) =>
    found.map(({ messageType }) => messageType[0]?.split(':').at(-1));

  beforeAll(async () => {
    service = await startTaskService({ replicas: 2 });
    for (const { name } of EVENTS)
      await service.brokers.main.management.bindQueue(`Platform.Contracts:${name}`, 'test.life');
  });
  afterAll(() => service.close());

  it('update: keeps instances that are still due, cancels the others, and adds new ones', async () => {
    const { id, facilityId, etag } = await schedule({ template: { list: ['a'] } });
    await addOverdue(id, facilityId);
    const before = await pending(id);
    const answer = await patch(id, {
      name: 'Long round',
      schedule: '0 9,15 * * 1-5',
      template: { list: ['b'] },
    })
      .set('if-match', etag)
      .expect(200);
    expect(answer.body).toMatchObject({
      name: 'Long round',
      schedule: '0 9,15 * * 1-5',
      template: { list: ['b'] },
    });
    expect(answer.headers['etag']).toMatch(/^"[0-9]{16}"$/);
    const isWorkday = ({ due }: Row) => due.getUTCDay() >= 1 && due.getUTCDay() <= 5;
    const [overdue, ...still] = await pending(id);
    expect(overdue).toMatchObject({ id: before[0]?.id, name: 'Round' });
    const kept = before.slice(1).filter(isWorkday);
    expect(still.filter(({ due }) => due.getUTCHours() === 9).map((row) => row.id)).toEqual(
      kept.map((row) => row.id),
    );
    expect(new Set(still.map(({ name, template }) => `${name} ${String(template)}`))).toEqual(
      new Set(['Long round {"list":["b"]}']),
    );
    expect(Math.abs(still.length - 2 * kept.length)).toBeLessThanOrEqual(1);
    const cancelled = (await rows(id)).filter(({ status }) => status === 'Cancelled');
    expect(cancelled).toHaveLength(30 - kept.length);
    expect(new Set(cancelled.map(({ cause }) => cause))).toEqual(new Set(['Update']));
    const [created, updated] = await events(facilityId);
    expect(names([created as ReceivedEvent, updated as ReceivedEvent])).toEqual([
      'ScheduleCreatedEvent',
      'ScheduleUpdatedEvent',
    ]);
    const { changedAtUtc, ...message } = updated?.message ?? {};
    expect(message).toEqual({
      ...created?.message,
      name: 'Long round',
      schedule: '0 9,15 * * 1-5',
      changedBy: { personId: null, name: 'Ivy Internal', persona: 1 },
      effectiveFromUtc: changedAtUtc,
      cancelledInstances: cancelled.length,
    });
  });

  it('update: never reuses an ETag that a failover has lost', async () => {
    const { id } = await schedule();
    const lost = (await patch(id, { name: 'lost' }).expect(200)).headers['etag'] as string;
    // Restores the row to its state before the lost commit, as a failover does.
    await service.database.query(
      `UPDATE task.schedules SET name = 'Round', revision = 1 WHERE schedule_id = $1`,
      [id],
    );
    const { etag } = (await patch(id, { name: 'kept' }).expect(200)).headers;
    expect(etag).not.toBe(lost);
    await patch(id, { name: 'overwritten' }).set('if-match', lost).expect(412);
    await patch(id, { name: 'next' })
      .set('if-match', etag as string)
      .expect(200);
  });

  it('update: a stale If-Match is a 412, a malformed one a 400, and a repetition has no event', async () => {
    const { id, facilityId, etag } = await schedule();
    await patch(id, { schedule: '0 10 * * *' }).set('if-match', '"7"').expect(412);
    await patch(id, { schedule: '0 10 * * *' }).set('if-match', 'none').expect(400);
    expect((await pending(id)).every(({ due }) => due.getUTCHours() === 9)).toBe(true);
    const first = await patch(id, { schedule: '0 10 * * *' }).set('if-match', etag).expect(200);
    // A client repeats the request if its first response was lost.
    const again = await patch(id, { schedule: '0 10 * * *' }).set('if-match', etag).expect(200);
    expect(again.body).toEqual(first.body);
    await patch(id, {}).expect(200);
    expect(names(await events(facilityId))).toEqual(['ScheduleCreatedEvent', 'ScheduleUpdatedEvent']);
  });

  it('update: null clears a member, and start and end dates are validated', async () => {
    const { id } = await schedule({ description: 'x', template: { a: 1 } });
    const inTenDays = new Date(Date.now() + 10 * DAY_MS).toISOString().slice(0, 10);
    const { body } = await patch(id, { description: null, template: null, endDate: inTenDays }).expect(200);
    expect(body).toMatchObject({ description: null, template: null, endDate: inTenDays });
    const due = (await pending(id)).map((row) => row.due.toISOString());
    expect(due.at(-1)).toBe(`${inTenDays}T09:00:00.000Z`);
    expect((await patch(id, { startDate: '2199-01-01' }).expect(422)).body.type).toBe(
      'urn:platform:problem:schedule-ends-before-start',
    );
    expect((await patch(id, { endDate: '9999-12-31' }).expect(422)).body.type).toBe(
      'urn:platform:problem:instant-out-of-range',
    );
    expect((await patch(id, { calendarId: randomUUID() }).expect(422)).body.type).toBe(
      'urn:platform:problem:calendar-unknown',
    );
    await patch(id, { schedule: null }).expect(400);
    await patch(id, { facilityId: 7 }).expect(400);
    await patch(id, { endDate: null }).expect(200);
    expect((await pending(id)).length).toBeGreaterThanOrEqual(29);
  });

  it('pause cancels future instances only, resume generates from now on, and repetitions have no effect', async () => {
    const { id, facilityId } = await schedule();
    await addOverdue(id, facilityId);
    const [overdue, first, second] = await pending(id);
    await service.api
      .post(`/Instances/${String(first?.id)}/commands/complete`)
      .set(PARTNER)
      .expect(200);
    await cancel(second?.id ?? '', { reason: 'closed' }).expect(200);
    for (const _ of ['once', 'repeated'])
      expect((await command(id, 'pause').expect(200)).body.status).toBe('Paused');
    expect(await generate(facilityId)).toBe(0);
    expect(await pending(id)).toEqual([overdue]);
    for (const _ of ['once', 'repeated'])
      expect((await command(id, 'resume').expect(200)).body.status).toBe('Active');
    const after = await rows(id);
    const standing = after.filter(({ status, cause }) => status !== 'Cancelled' || cause === 'Person');
    // No instance was generated in place of the completed one, or of the one that a person cancelled.
    expect(standing.map(({ due }) => due.getTime()).sort()).toEqual(
      [...new Set(after.map(({ due }) => due.getTime()))].sort(),
    );
    expect(after.filter(({ cause }) => cause === 'Pause')).toHaveLength(28);
    expect(await generate(facilityId)).toBe(0);
    const found = await events(facilityId);
    expect(names(found)).toEqual([
      'ScheduleCreatedEvent',
      'TaskInstanceCompletedEvent',
      'TaskInstanceCancelledEvent',
      'SchedulePausedEvent',
      'ScheduleResumedEvent',
    ]);
    expect(found.slice(3).map(({ message }) => message['cancelledInstances'])).toEqual([28, 0]);
  });

  it('remove is final', async () => {
    const { id, facilityId } = await schedule();
    await addOverdue(id, facilityId);
    for (const _ of ['once', 'repeated'])
      expect((await command(id, 'remove').expect(200)).body.status).toBe('Removed');
    expect(await pending(id)).toHaveLength(1);
    for (const name of ['pause', 'resume']) await command(id, name).expect(409);
    await patch(id, { name: 'x' }).expect(409);
    expect(names(await events(facilityId))).toEqual(['ScheduleCreatedEvent', 'ScheduleRemovedEvent']);
    expect(
      (await service.api.get('/Instances').query({ scheduleId: id }).set(PARTNER)).body.instances,
    ).toHaveLength(31);
  });

  it('a change first generates instances that are already due', async () => {
    const { id } = await schedule();
    await service.database.query(`DELETE FROM task.instances WHERE schedule_id = $1`, [id]);
    await service.database.query(
      `UPDATE task.schedules SET generated_until = now() - interval '3 days' WHERE schedule_id = $1`,
      [id],
    );
    await command(id, 'pause').expect(200);
    expect(await pending(id)).toHaveLength(3);
  });

  it('an instance cancelled by a person is not generated again, and a completed one cannot be cancelled', async () => {
    const { id, facilityId } = await schedule();
    const [first, second] = await pending(id);
    const answer = await cancel(first?.id ?? '', { reason: 'closed' }).expect(200);
    expect(answer.body).toMatchObject({
      status: 'Cancelled',
      cancellationCause: 'Person',
      cancellationReason: 'closed',
      cancelledBy: { personId: null, name: 'Ivy Internal', persona: 1 },
    });
    expect((await cancel(first?.id ?? '').expect(200)).body).toEqual(answer.body);
    await service.database.query(`UPDATE task.schedules SET generated_until = now() WHERE schedule_id = $1`, [
      id,
    ]);
    expect(await generate(facilityId)).toBe(0);
    await patch(id, { schedule: '0 9,10 * * *' }).expect(200);
    expect((await pending(id)).some(({ due }) => due.getTime() === first?.due.getTime())).toBe(false);
    await service.api
      .post(`/Instances/${String(second?.id)}/commands/complete`)
      .set(PARTNER)
      .expect(200);
    await cancel(second?.id ?? '').expect(409);
    await service.api
      .post(`/Instances/${String(first?.id)}/commands/complete`)
      .set(PARTNER)
      .expect(409);
    await cancel(randomUUID()).expect(404);
    const [, cancelled] = await events(facilityId);
    expect(cancelled?.message).toEqual({
      taskInstanceId: first?.id,
      scheduleId: id,
      facilityId,
      dueAtUtc: first?.due.toISOString(),
      changedAtUtc: answer.body.cancelledAtUtc,
      changedBy: { personId: null, name: 'Ivy Internal', persona: 1 },
    });
  });

  it('concurrent changes, generation and completions leave one effective instance per instant', async () => {
    const { id, facilityId } = await schedule();
    const due = await pending(id);
    const other = service.apis[1] as TaskFixture['api'];
    const complete = (row: Row) => other.post(`/Instances/${row.id}/commands/complete`).set(PARTNER);
    const statuses = await Promise.all([
      ...due.map((row) => complete(row).then(({ status }) => status)),
      ...['pause', 'resume', 'pause', 'resume'].map((name) => command(id, name).then(({ status }) => status)),
      ...[1, 2, 3].map((hour) =>
        patch(id, { schedule: `0 9,${String(hour)} * * *` }).then(({ status }) => status),
      ),
      ...[1, 2, 3].map(() => generate(facilityId).then(() => 200)),
    ]);
    expect(new Set(statuses)).toEqual(new Set([200, ...(statuses.includes(409) ? [409] : [])]));
    await command(id, 'resume').expect(200);
    const after = await rows(id);
    const standing = after.filter(({ status }) => status !== 'Cancelled');
    expect(new Set(standing.map((row) => row.due.getTime())).size).toBe(standing.length);
    const completed = after.filter(({ status }) => status === 'Completed');
    expect(completed).toHaveLength(statuses.slice(0, due.length).filter((status) => status === 200).length);
    const found = await events(facilityId);
    expect(
      found.filter(({ messageType }) => messageType[0]?.endsWith(':TaskInstanceCompletedEvent')),
    ).toHaveLength(completed.length);
    const counted = found.reduce((sum, { message }) => sum + Number(message['cancelledInstances'] ?? 0), 0);
    expect(after.filter(({ status }) => status === 'Cancelled')).toHaveLength(counted);
  });

  it('changes, completions and cancellations that waited for a lock are dated after its release', async () => {
    const { id, facilityId } = await schedule();
    const [first, second] = await pending(id);
    const holder = service.app.get(DataSource).createQueryRunner();
    await holder.startTransaction();
    await holder.query('SELECT 1 FROM task.schedules WHERE schedule_id = $1 FOR UPDATE', [id]);
    await holder.query('SELECT 1 FROM task.instances WHERE schedule_id = $1 FOR UPDATE', [id]);
    // One caller may run only two changes at a time, so another one sends the completion.
    const colleague = bearer({ sub: 'userid:9002', personas: Persona.InternalPartner });
    const answers = Promise.all([
      patch(id, { name: 'Later' }),
      service.api.post(`/Instances/${String(first?.id)}/commands/complete`).set(colleague),
      cancel(second?.id ?? ''),
    ]);
    await eventually(async () => {
      const waiting = await service.database.querySuperuser(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect(waiting).toHaveLength(3);
    });
    const rows = (await holder.query('SELECT clock_timestamp()::timestamptz(3) AS at')) as { at: Date }[];
    await holder.commitTransaction();
    await holder.release();
    expect((await answers).map(({ status }) => status)).toEqual([200, 200, 200]);
    const freed = rows[0]?.at.toISOString() ?? '';
    const dates = (await events(facilityId))
      .slice(1)
      .map(({ message }) => String(message['changedAtUtc'] ?? message['completedAtUtc']));
    expect(dates).toHaveLength(3);
    for (const date of dates) expect(date >= freed).toBe(true);
  });

  it('requires the same access for changes as for the creation', async () => {
    const { id } = await schedule({ facilityId: 501 });
    const [first] = await pending(id);
    for (const token of [SERVICE_PROVIDER]) {
      await patch(id, { name: 'x' }, token).expect(403);
      await command(id, 'pause', token).expect(403);
      await cancel(first?.id ?? '', {}, token).expect(403);
    }
    const { id: other } = await schedule({ facilityId: 503 });
    await patch(other, { name: 'x' }, CUSTOMER).expect(403);
    await command(other, 'remove', CUSTOMER).expect(403);
    await patch(id, { name: 'Owner’s' }, OWNER).expect(200);
    await patch(randomUUID(), { name: 'x' }).expect(404);
    for (const name of ['pause', 'resume', 'remove']) {
      await command(randomUUID(), name).expect(404);
      await command('none', name).expect(400);
    }
    await cancel('none').expect(400);
  });

  it('limits the frequency by persona', async () => {
    const { id } = await schedule({ facilityId: 502 });
    const often = await patch(id, { schedule: '*/4 * * * *' }, CUSTOMER).expect(422);
    expect(often.body.type).toBe('urn:platform:problem:schedule-too-frequent');
    await patch(id, { schedule: '*/5 * * * *', endDate: '2027-01-01' }, CUSTOMER).expect(200);
    const body = { facilityId: 502, name: 'Round', schedule: '0,3 9 * * *' };
    await service.api.post('/Schedules').set(CUSTOMER).send(body).expect(422);
    await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    await command(id, 'remove', CUSTOMER).expect(200);
  });
});
