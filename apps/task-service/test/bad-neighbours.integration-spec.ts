import { randomUUID } from 'node:crypto';
import { eventually, permitFaults } from '@platform/testing';
import fc from 'fast-check';
import { Client } from 'pg';
import { CalendarRolloutJob } from '../src/calendars/calendar-rollout.job';
import { partitionOf } from '../src/outbound/outbound-event';
import { InstanceAlignmentJob } from '../src/recurring-generation/instance-alignment.job';
import { GenerationPositionsJob } from '../src/reconciliation/generation-positions.job';
import { InstanceRetentionJob, ReleasedRetentionJob, TemplateRetentionJob } from '../src/retention.job';
import { SchedulerService } from '../src/scheduler/scheduler.service';
import { EndedSchedulesJob } from '../src/recurring-generation/ended-schedules.job';
import { startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

/** Reasons for which an item of a batch cannot be processed. */
const HARMS = ['refused', 'locked', 'unreadable'] as const;
type Harm = (typeof HARMS)[number];

const ITEMS = 12;
/** Generates the indexes of bad items, each with its kind of harm. */
const harmedItems = (...harms: readonly Harm[]) =>
  fc.dictionary(fc.nat(ITEMS - 1).map(String), fc.constantFrom(...harms), { minKeys: 1, maxKeys: 3 });
const RUNS = { numRuns: 4, endOnFailure: true };

describe('one bad item does not stop the others', () => {
  let service: TaskFixture;
  let holder: Client;
  let facilities: number[] = [];

  const query = <Row extends object>(sql: string, ...values: unknown[]) =>
    service.database.query<Row>(sql, values);
  /** Returns facilities that no earlier run has used, in ascending order. */
  const nextFacilities = (): number[] => {
    const first = (facilities.at(-1) ?? 700_000) + 1;
    return (facilities = Array.from({ length: ITEMS }, (_, index) => first + index));
  };
  const facilitiesWith = (harms: Readonly<Record<string, Harm>>, harm: Harm): number[] =>
    facilities.filter((_, index) => harms[index] === harm);
  const sound = (harms: Readonly<Record<string, Harm>>): number[] =>
    facilities.filter((_, index) => harms[index] === undefined);
  /**
   * Makes the database refuse writes to rows of the `refused` facilities, and locks the rows of the `locked`
   * ones.
   */
  const harm = async (table: string, harms: Readonly<Record<string, Harm>>): Promise<void> => {
    const refused = facilitiesWith(harms, 'refused');
    await query(
      `ALTER TABLE task.${table} ADD CONSTRAINT harmed CHECK (facility_id <> ALL ('{${refused.join()}}'::bigint[])) NOT VALID`,
    );
    await holder.query('BEGIN');
    await holder.query(`SELECT 1 FROM task.${table} WHERE facility_id = ANY ($1) FOR UPDATE`, [
      facilitiesWith(harms, 'locked'),
    ]);
  };
  const heal = async (table: string): Promise<void> => {
    await holder.query('ROLLBACK');
    await query(`ALTER TABLE task.${table} DROP CONSTRAINT IF EXISTS harmed`);
  };
  /** Inserts one schedule per facility. Returns their ids in facility order. */
  const addSchedules = async (columns: Readonly<Record<string, string>> = {}): Promise<string[]> => {
    const ids = facilities.map(() => randomUUID()).toSorted();
    const names = Object.keys(columns).map((name) => `, ${name}`);
    const values = Object.values(columns).map((value) => `, ${value}`);
    await query(
      `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
         created_by_persona, request_digest ${names.join('')})
       SELECT id, facility_id, 'Round', '0 9 * * *', 'UTC', now() + interval '1 hour', 's', 1, '' ${values.join('')}
       FROM unnest($1::uuid[], $2::bigint[]) AS new (id, facility_id)`,
      ids,
      facilities,
    );
    return ids;
  };
  const facilitiesWhere = async (table: string, condition: string): Promise<number[]> => {
    const rows = await query<{ id: number }>(
      `SELECT DISTINCT facility_id::float8 AS id FROM task.${table} WHERE facility_id = ANY ($1) AND ${condition} ORDER BY 1`,
      facilities,
    );
    return rows.map(({ id }) => id);
  };
  const property = async (
    harms: readonly Harm[],
    check: (harms: Readonly<Record<string, Harm>>) => Promise<void>,
  ): Promise<void> => {
    permitFaults();
    await fc.assert(
      fc.asyncProperty(harmedItems(...harms), (chosen) => {
        nextFacilities();
        return check(chosen);
      }),
      RUNS,
    );
  };

  beforeAll(async () => {
    service = await startTaskService({
      env: { INSTANCE_RETENTION_DAYS: '100', RELEASED_RETENTION_DAYS: '100' },
    });
    holder = new Client({ connectionString: service.database.ownerUrl });
    await holder.connect();
  });
  afterAll(async () => {
    await holder.end();
    await service.close();
  });

  it(
    'among due triggers',
    () =>
      property(HARMS, async (harms) => {
        await query(
          `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
         SELECT id, id::text, 'g', 'j', '0 2 * * *', 'UTC', now() + interval '1 day' FROM unnest($1::bigint[]) AS id`,
          facilities,
        );
        await query(
          `UPDATE task.triggers SET time_zone = 'Mars/X' WHERE facility_id = ANY ($1)`,
          facilitiesWith(harms, 'unreadable'),
        );
        await harm('fires', harms);
        // Makes the scheduler skip these triggers, but still lets them become due.
        await holder.query('SELECT 1 FROM task.triggers WHERE facility_id = ANY ($1) FOR KEY SHARE', [
          facilitiesWith(harms, 'locked'),
        ]);
        // Runs after `harm`, because the scheduler may poll at any time.
        await query(
          `UPDATE task.triggers SET next_fire_at = now() - interval '2 minutes' + facility_id % 1000 * interval '1 ms'
         WHERE facility_id = ANY ($1)`,
          facilities,
        );
        service.app.get(SchedulerService).wake();
        await eventually(
          async () => {
            expect(await facilitiesWhere('triggers', `next_fire_at > now()`)).toEqual(sound(harms));
            expect(await facilitiesWhere('triggers', `state = 'ERROR'`)).toEqual(
              facilities.filter((_, index) => ['refused', 'unreadable'].includes(harms[index] ?? '')),
            );
          },
          { timeoutMs: 20_000 },
        );
        await heal('fires');
      }),
    180_000,
  );

  it(
    'among the events that probe a paused message type',
    () =>
      property(['locked', 'unreadable'], async (harms) => {
        await query(
          `INSERT INTO task.outbox_pauses (message_type, reason, last_error, next_probe_at)
         VALUES ('TaskInstanceCompletedEvent', 'unconfirmed', 'test', now() + interval '1 hour')`,
        );
        for (const facilityId of facilities)
          await query(
            `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
           VALUES ($1, $2, gen_random_uuid(), 'TaskInstanceCompletedEvent', now(), '{}', $3)`,
            partitionOf(facilityId),
            facilityId,
            facilitiesWith(harms, 'unreadable').includes(facilityId)
              ? '{}'
              : JSON.stringify(completion(facilityId)),
          );
        await harm('outbox', { ...harms });
        await query('UPDATE task.outbox_pauses SET next_probe_at = now()');
        await eventually(
          async () =>
            expect(await facilitiesWhere('outbox', 'true')).toEqual(
              facilities.filter((_, index) => harms[index] !== undefined),
            ),
          { timeoutMs: 40_000 },
        );
        await heal('outbox');
        // Waits for the last probe, which would otherwise end the pause of the next run.
        await eventually(
          async () => {
            expect(await facilitiesWhere('outbox', 'true')).toEqual(facilitiesWith(harms, 'unreadable'));
            expect(await query('SELECT 1 FROM task.outbox_pauses')).toEqual([]);
          },
          { timeoutMs: 20_000 },
        );
        await query('DELETE FROM task.outbox');
      }),
    300_000,
  );

  it(
    'among the facilities of a changed calendar',
    () =>
      property(['refused'], async (harms) => {
        const calendarIds = [randomUUID(), randomUUID()];
        for (const calendarId of calendarIds)
          await query(
            `INSERT INTO task.calendars (calendar_id, name, excluded_dates, revision) VALUES ($1, 'c', '{}', 2)`,
            calendarId,
          );
        await addSchedules({ calendar_id: `'${calendarIds[0] ?? ''}'`, calendar_revision: '1' });
        await query(
          `UPDATE task.schedules SET calendar_id = $1 WHERE facility_id = ANY ($2)`,
          calendarIds[1],
          facilities.slice(ITEMS / 2),
        );
        await hold('ITaskInstanceGenerationRequested');
        await harm('outbox', { ...harms });
        await query(
          `INSERT INTO task.calendar_rollouts (calendar_id, after_facility_id, changed_at) SELECT id, 0, now() FROM unnest($1::uuid[]) AS id`,
          calendarIds,
        );
        await service.app.get(CalendarRolloutJob).run();
        await eventually(async () => expect(await facilitiesWhere('outbox', 'true')).toEqual(sound(harms)), {
          timeoutMs: 60_000,
        });
        await eventually(
          async () => expect(await query('SELECT 1 FROM task.calendar_rollouts')).toEqual([]),
          // The last pass waits for every transaction of the server that began before it, also in other
          // databases.
          { timeoutMs: 60_000 },
        );
        await heal('outbox');
        await query('DELETE FROM task.outbox');
        await query('DELETE FROM task.outbox_pauses');
      }),
    300_000,
  );

  it(
    'among schedules whose instances are released in batches',
    () =>
      property(['refused', 'locked'], async (harms) => {
        const ids = await addSchedules({ status: `'Paused'` });
        await query(
          `INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
         SELECT schedule_id, facility_id, name, now() + interval '1 day' FROM task.schedules WHERE schedule_id = ANY ($1)`,
          ids,
        );
        await query(
          `ALTER TABLE task.released_instances ADD CONSTRAINT harmed
           CHECK (facility_id <> ALL ('{${facilitiesWith(harms, 'refused').join()}}'::bigint[])) NOT VALID`,
        );
        await holder.query('BEGIN');
        await holder.query('SELECT 1 FROM task.instances WHERE facility_id = ANY ($1) FOR UPDATE', [
          facilitiesWith(harms, 'locked'),
        ]);
        await query(
          `INSERT INTO task.releases (schedule_id, cause, only_copies, changed_at, done_until, remaining)
         SELECT id, 'Pause', false, now(), now(), 1 FROM unnest($1::uuid[]) AS id`,
          ids,
        );
        const startedAt = performance.now();
        await eventually(
          async () => expect(await facilitiesWhere('released_instances', 'true')).toEqual(sound(harms)),
          { timeoutMs: 60_000 },
        );
        // A locked item must not delay the others.
        expect(performance.now() - startedAt).toBeLessThan(8_000);
        await holder.query('ROLLBACK');
        await query('ALTER TABLE task.released_instances DROP CONSTRAINT harmed');
        await service.app.get(InstanceAlignmentJob).run();
        await eventually(async () =>
          expect(await facilitiesWhere('released_instances', 'true')).toEqual(facilities),
        );
      }),
    300_000,
  );

  it(
    'among schedules that have ended',
    () =>
      property(HARMS, async (harms) => {
        const ids = await addSchedules({ end_date: `'2020-01-01'` });
        await query(
          `UPDATE task.schedules SET time_zone = 'Mars/X' WHERE facility_id = ANY ($1)`,
          facilitiesWith(harms, 'unreadable'),
        );
        await harm('schedules', harms);
        await service.app.get(EndedSchedulesJob).run();
        expect(await facilitiesWhere('schedules', 'ended_at IS NOT NULL')).toEqual(sound(harms));
        await heal('schedules');
        await query('DELETE FROM task.schedules WHERE schedule_id = ANY ($1)', ids);
      }),
    120_000,
  );

  it(
    'among triggers and schedules whose positions were moved ahead by a wrong clock',
    () =>
      property(HARMS, async (harms) => {
        const ids = await addSchedules({
          created_at: `now() - interval '1 day'`,
        });
        await query(
          `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
         SELECT id, id::text, 'g', 'j', '0 2 * * *', 'UTC', now() + interval '1 year' FROM unnest($1::bigint[]) AS id`,
          facilities,
        );
        await query(
          `UPDATE task.schedules SET generated_until = now() + interval '300 days' WHERE facility_id = ANY ($1)`,
          facilities,
        );
        for (const table of ['triggers', 'schedules'])
          await query(
            `UPDATE task.${table} SET time_zone = 'Mars/X' WHERE facility_id = ANY ($1)`,
            facilitiesWith(harms, 'unreadable'),
          );
        await query(
          `UPDATE task.schedules SET generated_until = now() + interval '300 days' WHERE facility_id = ANY ($1)`,
          facilities,
        );
        await harm('triggers', harms);
        await query(
          `ALTER TABLE task.schedules ADD CONSTRAINT harmed
           CHECK (facility_id <> ALL ('{${facilitiesWith(harms, 'refused').join()}}'::bigint[])) NOT VALID`,
        );
        await holder.query('SELECT 1 FROM task.schedules WHERE facility_id = ANY ($1) FOR UPDATE', [
          facilitiesWith(harms, 'locked'),
        ]);
        await service.app.get(GenerationPositionsJob).run();
        expect(await facilitiesWhere('triggers', `next_fire_at < now() + interval '2 days'`)).toEqual(
          sound(harms),
        );
        expect(await facilitiesWhere('schedules', `generated_until < now() + interval '2 days'`)).toEqual(
          sound(harms),
        );
        await heal('triggers');
        await query('ALTER TABLE task.schedules DROP CONSTRAINT harmed');
        await query('DELETE FROM task.triggers');
        await query('DELETE FROM task.instances');
        await query('DELETE FROM task.schedules WHERE schedule_id = ANY ($1)', ids);
      }),
    120_000,
  );

  it(
    'among instances and templates whose retention has ended',
    () =>
      property(['locked'], async (harms) => {
        const ids = await addSchedules({ status: `'Paused'` });
        for (const table of ['instances', 'released_instances'])
          await query(
            `INSERT INTO task.${table} (schedule_id, facility_id, name, due_at, status, ${table === 'instances' ? 'completed_at' : 'cancelled_at'})
           SELECT schedule_id, facility_id, name, now() - interval '200 days', '${table === 'instances' ? 'Completed' : 'Cancelled'}',
             now() - interval '200 days' FROM task.schedules WHERE schedule_id = ANY ($1)`,
            ids,
          );
        await holder.query('BEGIN');
        await holder.query('SELECT 1 FROM ONLY task.instances WHERE facility_id = ANY ($1) FOR UPDATE', [
          facilitiesWith(harms, 'locked'),
        ]);
        for (const job of [ReleasedRetentionJob, InstanceRetentionJob, TemplateRetentionJob])
          await service.app.get<{ run(): Promise<unknown> }>(job).run();
        expect(await facilitiesWhere('instances', 'true')).toEqual(facilitiesWith(harms, 'locked'));
        await holder.query('ROLLBACK');
        await service.app.get(InstanceRetentionJob).run();
        expect(await facilitiesWhere('instances', 'true')).toEqual([]);
      }),
    120_000,
  );

  /** Pauses the message type, so that its events stay in the outbox and can be counted. */
  const hold = (messageType: string) =>
    query(
      `INSERT INTO task.outbox_pauses (message_type, reason, last_error, next_probe_at)
       VALUES ($1, 'unconfirmed', 'test', now() + interval '1 hour')`,
      messageType,
    );
});

const completion = (facilityId: number) => ({
  taskInstanceId: randomUUID(),
  scheduleId: randomUUID(),
  facilityId,
  dueAtUtc: '2026-01-01T06:00:00.000Z',
  completedAtUtc: '2026-01-01T07:00:00.000Z',
  completedBy: { personId: null, name: null, persona: 1 },
});
