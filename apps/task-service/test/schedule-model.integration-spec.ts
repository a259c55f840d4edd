import { randomUUID } from 'node:crypto';
import { getDataSourceToken } from '@nestjs/typeorm';
import { eventually, testSize } from '@platform/testing';
import fc from 'fast-check';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { CONSUMER_POOL } from '../src/database-layout';
import { InstanceGenerationService } from '../src/recurring-generation/instance-generation.service';
import { ScheduleModel } from './schedule-model';
import type { Definition, ModelInstance } from './schedule-model';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

const SEQUENCES = testSize('TEST_SEQUENCES', { quick: 15, full: 30 });
const DAY_MS = 86_400_000;
const YEAR = new Date().getUTCFullYear() + 1;
/** Start times of sequences, shortly before daylight saving time begins or ends in Europe. */
const STARTS = [Date.UTC(YEAR, 2, 20, 10), Date.UTC(YEAR, 9, 20, 10)];
const EVENTS = [
  'ScheduleCreatedEvent',
  'ScheduleUpdatedEvent',
  'SchedulePausedEvent',
  'ScheduleResumedEvent',
  'ScheduleRemovedEvent',
  'TaskInstanceCompletedEvent',
  'TaskInstanceCancelledEvent',
];

const date = fc.integer({ min: 0, max: 45 }).map((days) => days * DAY_MS);
const definition = fc.record({
  name: fc.constantFrom('a', 'b'),
  schedule: fc.constantFrom('30 2 * * *', '0 9 * * 1-5', '0 */6 * * *', '15 2,3 */2 * *', '0 0 1,15 * 1'),
  timeZone: fc.constantFrom('Europe/Berlin', 'America/Havana', 'UTC'),
  startsIn: fc.option(date, { freq: 4 }),
  endsIn: fc.option(
    date.map((ms) => ms + 45 * DAY_MS),
    { freq: 4 },
  ),
  hasCalendar: fc.boolean(),
});
const who = fc.nat();
const operation = fc.oneof(
  fc.record({ does: fc.constant('create' as const), definition }),
  fc.record({ does: fc.constant('generate' as const) }),
  fc.record({
    does: fc.constant('update' as const),
    who,
    definition,
    members: fc.subarray(['name', 'schedule', 'timeZone', 'startDate', 'endDate', 'calendarId'] as const),
  }),
  fc.record({ does: fc.constantFrom('pause' as const, 'resume' as const, 'remove' as const), who }),
  fc.record({ does: fc.constantFrom('pause' as const, 'resume' as const), who }),
  fc.record({ does: fc.constantFrom('complete' as const, 'cancel' as const), who }),
  fc.record({ does: fc.constant('calendar' as const), days: fc.uniqueArray(fc.nat(60), { maxLength: 12 }) }),
  fc.record({ does: fc.constant('step' as const), hours: fc.integer({ min: 1, max: 20 * 24 }) }),
  fc.record({ does: fc.constant('restart' as const), chance: fc.nat(30) }),
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;
const sequence = fc.record({
  start: fc.constantFrom(...STARTS),
  first: definition,
  operations: fc.array(operation, { minLength: 1, maxLength: 20 }),
});

describe('random sequences of schedule commands', () => {
  let service: TaskFixture;
  let lastFacility = 0;
  const expected = new Map<number, string[]>();
  const receivedEvents = new Map<number, string[]>();

  /** Replaces `now()` and `clock_timestamp()` in the service's statements by a clock that the test sets. */
  const useTestClock = () => {
    for (const token of [DataSource, getDataSourceToken(CONSUMER_POOL)]) {
      const { master } = service.app.get<DataSource>(token).driver as unknown as { master: Pool };
      master.on('acquire', (client) => void client.query('SET search_path = test_clock, pg_catalog, task'));
    }
  };
  const setClock = (now: number) =>
    service.database.query('UPDATE test_clock.clock SET at = $1', [new Date(now)]);

  beforeAll(async () => {
    service = await startTaskService({
      env: { SCHEDULES_PER_FACILITY: '1000000', INSTANCES_PER_FACILITY: '1000000' },
    });
    for (const statement of [
      'CREATE SCHEMA test_clock',
      'CREATE TABLE test_clock.clock AS SELECT pg_catalog.now() AS at',
      `CREATE FUNCTION test_clock.clock_timestamp() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM test_clock.clock'`,
      `CREATE FUNCTION test_clock.now() RETURNS timestamptz STABLE LANGUAGE sql AS 'SELECT at FROM test_clock.clock'`,
      'GRANT USAGE ON SCHEMA test_clock TO PUBLIC',
      'GRANT SELECT ON test_clock.clock TO PUBLIC',
    ])
      await service.database.query(statement);
    useTestClock();
    for (const name of EVENTS)
      await service.brokers.main.management.bindQueue(`Platform.Contracts:${name}`, 'test.model');
  });
  afterAll(() => service.close());

  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${await service.app.getUrl()}${path}`, {
      method,
      headers: { ...PARTNER, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const generate = (facilityId: number) =>
    service.app
      .get(DataSource)
      .transaction((manager) => service.app.get(InstanceGenerationService).generate(manager, { facilityId }));

  /** One sequence, with a facility and a calendar of its own. */
  class Run {
    readonly facilityId = (lastFacility += 1);
    readonly calendarId = randomUUID();
    readonly model: ScheduleModel;

    constructor(readonly start: number) {
      this.model = new ScheduleModel(start);
    }

    definition(
      random: { startsIn: number | null; endsIn: number | null; hasCalendar: boolean } & Pick<
        Definition,
        'name' | 'schedule' | 'timeZone'
      >,
    ): Definition {
      const { startsIn, endsIn, hasCalendar, ...definition } = random;
      const day = (ms: number) => new Date(this.start + ms).toISOString().slice(0, 10);
      return {
        ...definition,
        startDate: startsIn === null ? null : day(startsIn),
        endDate: endsIn === null ? null : day(endsIn),
        calendarId: hasCalendar ? this.calendarId : null,
      };
    }

    async perform(each: Operation): Promise<void> {
      const { model, facilityId } = this;
      switch (each.does) {
        case 'create':
          return this.create(this.definition(each.definition));
        case 'generate':
          await generate(facilityId);
          return model.generate();
        case 'update':
          return this.update(each);
        case 'pause':
        case 'resume':
        case 'remove': {
          const schedule = model.schedules[each.who % model.schedules.length];
          if (!schedule) return;
          const { status } = await call('POST', `/Schedules/${schedule.id}/commands/${each.does}`);
          return expect(status).toBe(model.command(schedule, each.does));
        }
        case 'complete':
        case 'cancel': {
          const instance = model.instances[each.who % model.instances.length];
          if (!instance?.id) return;
          const { status } = await call('POST', `/Instances/${instance.id}/commands/${each.does}`);
          return expect(status).toBe(model.end(instance, each.does));
        }
        case 'calendar':
          return this.putCalendar(each.days);
        case 'step':
          model.now += each.hours * 3_600_000;
          await setClock(model.now);
          return;
        case 'restart':
          if (each.chance > 0) return;
          await service.restart();
          return useTestClock();
      }
    }

    async create(wanted: Definition): Promise<void> {
      const { status, body } = await call('POST', '/Schedules', { facilityId: this.facilityId, ...wanted });
      expect(status).toBe(201);
      this.model.create(body['scheduleId'] ?? '', wanted);
    }

    async update({
      who,
      members,
      definition: random,
    }: Extract<Operation, { does: 'update' }>): Promise<void> {
      const schedule = this.model.schedules[who % this.model.schedules.length];
      if (!schedule) return;
      const wanted = this.definition(random);
      const change = Object.fromEntries(members.map((member) => [member, wanted[member]]));
      const { status } = await call('PATCH', `/Schedules/${schedule.id}`, change);
      expect(status).toBe(this.model.update(schedule, change));
    }

    async putCalendar(days: readonly number[]): Promise<void> {
      const dates = days.map((day) => new Date(this.start + day * DAY_MS).toISOString().slice(0, 10)).sort();
      await call('PUT', `/Calendars/${this.calendarId}`, { name: 'x', excludedDates: dates });
      // A request that changes nothing generates nothing: a new schedule waits for its first generation.
      if (dates.join() === this.model.excludedDates.join()) return;
      this.model.excludedDates = dates;
      const isStale = this.model.schedules.some(
        (each) => each.status === 'Active' && this.model.isStale(each),
      );
      if (!isStale) return;
      // Waits for the request for generation, which goes through the broker.
      await eventually(async () => {
        const stale = await service.database.query(
          `SELECT 1 FROM task.schedules AS schedule JOIN task.calendars AS calendar USING (calendar_id)
           WHERE facility_id = $1 AND status = 'Active' AND ended_at IS NULL
             AND calendar_revision IS DISTINCT FROM calendar.revision`,
          [this.facilityId],
        );
        expect(stale).toEqual([]);
      });
      this.model.generate();
    }

    /** Expects the instances of the model, with unchanged identifiers of those that are effective. */
    async compare(): Promise<void> {
      const rows = await service.database.query<Row>(
        `SELECT task_instance_id AS id, schedule_id AS "scheduleId", due_at AS due, status, cancellation_cause AS cause, name
         FROM task.instances WHERE facility_id = $1`,
        [this.facilityId],
      );
      const isEffective = (each: { status: string; cause: string | null }) =>
        each.status !== 'Cancelled' || each.cause === 'Person';
      const key = ({ scheduleId, due, status, cause, name }: Row | ModelInstance) =>
        [scheduleId, new Date(due).toISOString(), status, cause, name].join(' ');
      expect(rows.map(key).sort()).toEqual(this.model.instances.map(key).sort());
      const idOf = new Map(rows.filter(isEffective).map((row) => [key(row), row.id]));
      for (const instance of this.model.instances.filter(isEffective)) {
        const id = idOf.get(key(instance)) ?? null;
        if (instance.id !== null && instance.id !== id)
          throw new Error(`${key(instance)} is another instance`);
        instance.id = id;
      }
    }
  }

  it('lead to the instances of the model, with each event once and in order', async () => {
    await fc.assert(
      fc.asyncProperty(sequence, async ({ start, first, operations }) => {
        const run = new Run(start);
        await setClock(start);
        expected.set(run.facilityId, run.model.events);
        await call('PUT', `/Calendars/${run.calendarId}`, { name: 'x', excludedDates: [] });
        for (const each of [
          { does: 'create' as const, definition: first },
          { does: 'generate' as const },
          ...operations,
        ]) {
          await run.perform(each);
          await run.compare();
        }
      }),
      { numRuns: SEQUENCES },
    );
    await eventually(
      async () => expect(await service.database.query('SELECT 1 FROM task.outbox LIMIT 1')).toEqual([]),
      { timeoutMs: 60_000 },
    );
    const messages = await service.brokers.main.management.get('test.model', 1_000_000);
    const seen = new Set<string>();
    for (const { body } of messages) {
      const { messageId, messageType, message } = JSON.parse(body) as Envelope;
      // The relay publishes an event again with the same id if it could not record the first time.
      if (seen.has(messageId)) continue;
      seen.add(messageId);
      const list = receivedEvents.get(message.facilityId) ?? [];
      receivedEvents.set(message.facilityId, [...list, eventText(messageType[0] ?? '', message)]);
    }
    for (const [facilityId, events] of expected) expect(receivedEvents.get(facilityId) ?? []).toEqual(events);
  }, 36_000_000);
});

interface Row {
  id: string;
  scheduleId: string;
  due: Date;
  status: string;
  cause: string | null;
  name: string;
}

interface Envelope {
  messageId: string;
  messageType: string[];
  message: EventMessage;
}

interface EventMessage {
  facilityId: number;
  scheduleId: string;
  dueAtUtc?: string;
  cancelledInstances?: number;
}

/** Formats an event as the model does. */
function eventText(type: string, { scheduleId, dueAtUtc, cancelledInstances }: EventMessage): string {
  const about = dueAtUtc === undefined ? cancelledInstances : Date.parse(dueAtUtc);
  return [type.split(':').at(-1), scheduleId, ...(about === undefined ? [] : [about])].join(' ');
}
