import { randomUUID } from 'node:crypto';
import { ScheduleCreatedEvent, ScheduleCreatedNotification } from '@platform/contracts';
import { errorQueue, exchangeName } from '@platform/messaging';
import { eventually } from '@platform/testing';
import { runAdmin } from '../src/admin/administration';
import { QUEUES } from '../src/recurring-generation/queues';
import { NAMESPACE, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('the operator’s command line', () => {
  let service: TaskFixture;
  let env: NodeJS.ProcessEnv;

  const admin = async (...args: string[]) => {
    let [output, complaint] = ['', ''];
    const exitCode = await runAdmin(args, {
      env,
      write: (text) => (output += text),
      complain: (text) => (complaint += text),
    });
    return { exitCode, output, complaint };
  };
  const rows = async (...args: string[]) => JSON.parse((await admin(...args, '--json')).output);
  const created = (facilityId: number) => ({
    scheduleId: randomUUID(),
    facilityId,
    name: 'operator',
    schedule: '0 6 * * *',
    timeZone: 'UTC',
    createdAtUtc: '2026-01-01T00:00:00.000Z',
    createdBy: { personId: null, name: null, persona: 1 },
  });
  const park = async (facilityId: number): Promise<string> => {
    const [row] = await service.database.query<{ id: string }>(
      `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, attempts, last_error,
         parked_at)
       VALUES (3, $1, gen_random_uuid(), 'ScheduleCreatedEvent', '2026-01-01T00:00:01.234Z', '{"x":1}', $2, 20, 'NO_ROUTE', now())
       RETURNING message_id AS id`,
      [facilityId, created(facilityId)],
    );
    return row?.id ?? '';
  };
  const publish = (messageId: string, message: object, messageType = 'IScheduleCreatedEvent') =>
    service.brokers.scheduling.management.publish(exchangeName(NAMESPACE, ScheduleCreatedNotification.name), {
      body: JSON.stringify({ messageId, messageType: [`urn:message:${NAMESPACE}:${messageType}`], message }),
      properties: { content_type: 'application/vnd.masstransit+json', headers: { tenant: 'acme' } },
    });
  const listed = (count: number, ...args: string[]) =>
    eventually(async () => {
      const found = await rows('errors', 'list', ...args);
      expect(found).toHaveLength(count);
      return found;
    });

  beforeAll(async () => {
    service = await startTaskService();
    env = {
      DATABASE_URL: service.database.url,
      RABBITMQ_MAIN_URL: service.brokers.main.url,
      RABBITMQ_SCHEDULING_URL: service.brokers.scheduling.url,
    };
  });
  afterAll(() => service.close());

  describe('on parked events', () => {
    afterEach(() => service.database.query('DELETE FROM task.outbox'));

    it('lists and shows them', async () => {
      const [first] = [await park(470), await park(471)];
      expect((await admin('outbox', 'list')).output).toMatch(/messageId +facilityId[^]*470[^]*471/);
      expect(await rows('outbox', 'list', '--facility', '470')).toEqual([
        expect.objectContaining({ messageId: first, facilityId: 470, attempts: 20, lastError: 'NO_ROUTE' }),
      ]);
      const { output } = await admin('outbox', 'show', first ?? '');
      expect(output).toContain('"name": "operator"');
    });

    it('replays one event, which a running replica publishes unchanged', async () => {
      await service.watch(ScheduleCreatedEvent);
      const id = await park(470);
      await park(471);
      expect(await admin('outbox', 'replay', id.toUpperCase())).toMatchObject({
        exitCode: 0,
        output: expect.stringContaining('1 replayed'),
      });
      expect(await service.received(ScheduleCreatedEvent, 1)).toMatchObject([
        {
          messageId: id,
          conversationId: id,
          sentTime: '2026-01-01T00:00:01.234Z',
          headers: { x: 1 },
          message: { facilityId: 470, name: 'operator' },
        },
      ]);
      await eventually(async () =>
        expect(await service.database.query('SELECT facility_id FROM task.outbox')).toEqual([
          { facility_id: '471' },
        ]),
      );
    });

    it('discards parked events only', async () => {
      const id = await park(472);
      const [waiting] = await service.database.query<{ id: string }>(
        `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, attempts, next_attempt_at)
         VALUES (3, 473, gen_random_uuid(), 'ScheduleCreatedEvent', now(), '{}', '{}', 1, now() + interval '5 minutes')
         RETURNING message_id AS id`,
      );
      const answer = await admin('outbox', 'discard', id, waiting?.id ?? '', '--yes');
      expect(answer).toMatchObject({ exitCode: 1, complaint: `not found: ${waiting?.id ?? ''}\n` });
      expect(await service.database.query('SELECT facility_id FROM task.outbox')).toEqual([
        { facility_id: '473' },
      ]);
    });
  });

  describe('on error queues', () => {
    const schedule = async (): Promise<string> => {
      const id = randomUUID();
      await service.database.query(
        `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until,
           created_by_subject, created_by_persona, request_digest)
         VALUES ($1, 501, 'n', '0 6 * * *', 'UTC', now(), 's', 1, 'd')`,
        [id],
      );
      return id;
    };
    const notification = (scheduleId: string) => ({
      scheduleId,
      facilityId: 501,
      name: 'n',
      schedule: '0 6 * * *',
      timeZone: 'UTC',
      createdAtUtc: '2026-01-01T00:00:00Z',
      createdBy: { personId: null, name: null, persona: 1 },
    });
    const instances = () => service.database.query('SELECT 1 FROM task.instances');
    /** Puts a message into the error queue, as the service does after its last attempt has failed. */
    const fail = (messageId: string, scheduleId: string) =>
      service.brokers.scheduling.management.publish('', {
        routingKey: errorQueue(QUEUES.scheduleCreated),
        body: JSON.stringify(notification(scheduleId)),
        properties: {
          content_type: 'application/json',
          message_id: messageId,
          headers: {
            tenant: 'acme',
            'x-error-reason': 'failed',
            'x-retry-attempts': 5,
            'x-original-exchange': exchangeName(NAMESPACE, ScheduleCreatedNotification.name),
            'MT-Fault-ExceptionType': 'RangeError',
            'MT-Fault-Message': 'm',
          },
        },
      });

    it('lists and shows messages in error queues with the reason, and leaves them there', async () => {
      const id = randomUUID();
      await publish(id, { facilityId: 'not a number' });
      const [line] = await listed(1);
      expect(line).toMatchObject({
        messageId: id,
        queue: errorQueue(QUEUES.scheduleCreated),
        type: 'IScheduleCreatedEvent',
        reason: 'invalid',
        error: expect.stringMatching(/^InvalidMessageError: /),
      });
      expect((await admin('errors', 'show', id)).output).toContain('not a number');
      expect((await admin('errors', 'list')).output).toContain(id);
    });

    it('replays a message that violates its contract, which returns with its id and without retries', async () => {
      const [before] = await listed(1);
      expect((await admin('errors', 'replay', '--all')).output).toContain('1 replayed');
      const [after] = await listed(1);
      expect(after.messageId).toBe(before.messageId);
      expect(await admin('errors', 'discard', after.messageId, '--yes')).toMatchObject({ exitCode: 0 });
      await listed(0);
    });

    it('replays a failed message with its id, and the inbox applies it once', async () => {
      const [id, scheduleId] = [randomUUID(), await schedule()];
      await fail(id, scheduleId);
      expect(await listed(1)).toMatchObject([{ messageId: id, reason: 'failed', error: 'RangeError: m' }]);
      expect((await admin('errors', 'replay', id)).exitCode).toBe(0);
      const generated = await eventually(async () => {
        const found = await instances();
        expect(found.length).toBeGreaterThan(0);
        return found.length;
      });
      expect(
        await service.database.query('SELECT queue FROM task.inbox WHERE message_id = $1', [id]),
      ).toEqual([{ queue: QUEUES.scheduleCreated }]);
      // Replays the message a second time, as after a crash between publishing and removing it.
      await fail(id, scheduleId);
      await listed(1);
      await admin('errors', 'replay', id);
      await listed(0);
      await eventually(async () =>
        expect(await service.brokers.scheduling.management.get(QUEUES.scheduleCreated, 1)).toEqual([]),
      );
      expect(await instances()).toHaveLength(generated);
    });

    it('replays a message whose handler failed and rolled back, including its inbox row', async () => {
      const id = randomUUID();
      const triggers = () => service.database.query('SELECT 1 FROM task.triggers WHERE facility_id = 480');
      // This constraint makes the handler's last statement fail.
      await service.database.query('ALTER TABLE task.triggers ADD CONSTRAINT broken CHECK (false) NOT VALID');
      await service.brokers.scheduling.management.publish('', {
        routingKey: QUEUES.scheduleRequest,
        body: JSON.stringify({ facilityId: 480 }),
        properties: {
          content_type: 'application/json',
          message_id: id,
          type: `urn:message:${NAMESPACE}:IScheduleRecurringTaskInstanceGenerationRequest`,
        },
      });
      expect(await listed(1)).toMatchObject([{ messageId: id, reason: 'failed' }]);
      expect(await service.database.query('SELECT 1 FROM task.inbox WHERE message_id = $1', [id])).toEqual(
        [],
      );
      await service.database.query('ALTER TABLE task.triggers DROP CONSTRAINT broken');
      expect((await admin('errors', 'replay', id)).exitCode).toBe(0);
      await eventually(async () => expect(await triggers()).toHaveLength(1));
      await listed(0);
    });

    it('distinguishes skipped queues from error queues', async () => {
      await publish(randomUUID(), {}, 'SomethingElse');
      await listed(1, '--skipped');
      await listed(0);
      expect((await admin('errors', 'discard', '--all', '--skipped', '--yes')).output).toContain(
        '1 discarded',
      );
      await listed(0, '--skipped');
    });

    it('keeps the order of the remaining messages', async () => {
      const ids = Array.from({ length: 5 }, () => randomUUID());
      for (const id of ids) await fail(id, randomUUID());
      await admin('errors', 'discard', ids[2] ?? '', '--yes');
      expect((await listed(4)).map((line: { messageId: string }) => line.messageId)).toEqual(
        ids.filter((_id, index) => index !== 2),
      );
      await admin('errors', 'discard', '--all', '--yes');
    });
  });

  describe('on waiting events and messages', () => {
    afterEach(() => service.database.query('DELETE FROM task.outbox'));
    const wait = async (facilityId: number): Promise<string> => {
      const [row] = await service.database.query<{ id: string }>(
        `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, attempts,
           next_attempt_at, last_error)
         VALUES (3, $1, gen_random_uuid(), 'ScheduleCreatedEvent', now(), '{}', '{}', 1, now() + interval '5 minutes', 'NO_ROUTE')
         RETURNING message_id AS id`,
        [facilityId],
      );
      return row?.id ?? '';
    };

    it('shows the number of messages everywhere, with their age and reason', async () => {
      await wait(480);
      await park(481);
      await publish(randomUUID(), { facilityId: 'not a number' });
      await listed(1);
      const status = await rows('status');
      expect(status).toEqual(
        expect.arrayContaining([
          expect.objectContaining({
            where: 'outbox',
            what: 'ScheduleCreatedEvent',
            messages: 1,
            why: 'NO_ROUTE',
          }),
          expect.objectContaining({
            where: 'outbox, parked',
            messages: 1,
            since: expect.stringMatching(/Z$/),
          }),
          ...Object.values(QUEUES).map((what) => expect.objectContaining({ what, consumers: 1, why: null })),
          expect.objectContaining({
            what: errorQueue(QUEUES.scheduleCreated),
            messages: 1,
            since: expect.stringMatching(/Z$/),
            why: expect.stringMatching(/^InvalidMessageError/),
          }),
        ]),
      );
      expect((await admin('status')).output).toMatch(/where +what +messages +consumers +since +why/);
      await admin('errors', 'discard', '--all', '--yes');
    });

    it('skips an event that blocks others: parks it for a later replay', async () => {
      const id = await wait(482);
      expect(await rows('outbox', 'list', '--waiting')).toMatchObject([
        { messageId: id, lastError: 'NO_ROUTE' },
      ]);
      expect((await admin('outbox', 'skip', id, '--dry-run')).output).toContain('1 would be skipped');
      expect(await rows('outbox', 'list')).toEqual([]);
      expect((await admin('outbox', 'skip', id)).output).toContain('1 skipped');
      expect(await rows('outbox', 'list')).toMatchObject([{ messageId: id }]);
    });

    it('reports its progress, and changes nothing in a dry run', async () => {
      await service.database.query(
        `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, parked_at)
         SELECT 3, n, gen_random_uuid(), 'ScheduleCreatedEvent', now(), '{}', '{}', now() FROM generate_series(1, 2500) AS n`,
      );
      expect((await admin('outbox', 'discard', '--all', '--yes', '--dry-run')).output).toMatch(
        /2500 would be discarded/,
      );
      const { complaint, output } = await admin('outbox', 'discard', '--all', '--yes');
      expect([complaint, output.split('\n').at(-2)]).toEqual([
        '1000 so far\n2000 so far\n',
        '2500 discarded',
      ]);
      expect(await service.database.query('SELECT 1 FROM task.outbox')).toEqual([]);
    });

    it('lists a message that waits for its next retry, with the reason, and replays it at once', async () => {
      const id = randomUUID();
      const main = service.brokers.main.management;
      const change = {
        eventId: randomUUID(),
        occurredAtUtc: '2026-01-01T00:00:00Z',
        businessUnitId: 5,
        facilityIds: [483],
        changeType: 'Activated',
      };
      await service.database.query('ALTER TABLE task.triggers ADD CONSTRAINT broken CHECK (false) NOT VALID');
      await main.publish('', {
        routingKey: QUEUES.businessUnitChange,
        body: JSON.stringify(change),
        properties: { content_type: 'application/json', message_id: id },
      });
      // The replay takes it out of the first retry queue. It fails again and goes to the second one.
      await listed(1, '--waiting');
      await admin('errors', 'replay', id, '--waiting');
      const [line] = await listed(1, '--waiting');
      expect(line).toMatchObject({ messageId: id, error: expect.stringContaining('broken') });
      await service.database.query('ALTER TABLE task.triggers DROP CONSTRAINT broken');
      expect((await admin('errors', 'replay', id, '--waiting')).output).toContain('1 replayed');
      await eventually(async () =>
        expect(
          await service.database.query('SELECT 1 FROM task.triggers WHERE facility_id = 483'),
        ).toHaveLength(1),
      );
      await listed(0, '--waiting');
    });

    it('moves messages to another queue of the service', async () => {
      const id = randomUUID();
      await publish(id, { facilityId: 'not a number' });
      await listed(1);
      const target = ['--to', QUEUES.scheduleRequest];
      expect((await admin('errors', 'move', id, ...target, '--dry-run')).output).toContain(
        '1 would be moved',
      );
      expect((await admin('errors', 'move', id, ...target)).output).toContain('1 moved');
      // That queue does not know the message type, so it skips the message.
      expect(await listed(1, '--skipped')).toMatchObject([
        { messageId: id, queue: `${QUEUES.scheduleRequest}_skipped` },
      ]);
      await admin('errors', 'discard', '--all', '--skipped', '--yes');
      await listed(0);
    });
  });

  it('reports an error in one line, without credentials', async () => {
    env = {
      ...env,
      DATABASE_URL: 'postgres://u:secret@127.0.0.1:9/x',
      RABBITMQ_MAIN_URL: 'amqp://u:secret@127.0.0.1:9',
    };
    for (const args of [
      ['outbox', 'list'],
      ['errors', 'list'],
    ]) {
      const { exitCode, complaint, output } = await admin(...args);
      expect([exitCode, output]).toEqual([1, '']);
      expect(complaint).toMatch(/^task:admin: .*(reached|unavailable).*ECONNREFUSED/);
      expect(complaint).not.toContain('secret');
    }
    expect(await admin('outbox', 'lst')).toMatchObject({
      exitCode: 2,
      complaint: expect.stringContaining('list'),
    });
  });
});
