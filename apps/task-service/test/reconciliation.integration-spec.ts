import { randomUUID } from 'node:crypto';
import { ScheduleCreatedEvent } from '@platform/contracts';
import { eventually } from '@platform/testing';
import { DataSource } from 'typeorm';
import { runAdmin } from '../src/admin/administration';
import { ReconciliationJob } from '../src/reconciliation/reconciliation.job';
import { ReconciliationRepository } from '../src/reconciliation/reconciliation.repository';
import { PARTNER, startTaskService } from './task-fixture';
import type { TaskFixture } from './task-fixture';

describe('reconciliation', () => {
  let service: TaskFixture;

  const reconcile = async (...args: string[]) => {
    let output = '';
    const env = {
      DATABASE_URL: service.database.url,
      RABBITMQ_MAIN_URL: service.brokers.main.url,
      RABBITMQ_SCHEDULING_URL: service.brokers.scheduling.url,
    };
    const write = (text: string) => void (output += text);
    expect(await runAdmin(['reconcile', ...args, '--json'], { env, write })).toBe(0);
    const found = JSON.parse(output) as { problem: string; facilityId: number; id: string; repair: string }[];
    // Most facilities here have no trigger. generation-positions.integration-spec covers that finding.
    return found.filter(({ problem }) => problem !== 'facility without trigger');
  };
  const query = (sql: string, ...values: unknown[]) => service.database.query(sql, values);
  const instances = async (scheduleId: string): Promise<number> => {
    const rows = await query('SELECT 1 FROM task.instances WHERE schedule_id = $1', scheduleId);
    return rows.length;
  };
  /** Creates a schedule whose published event reaches no receiver, as after a restore of a backup. */
  const lostSchedule = async (facilityId: number, more: object = {}): Promise<string> => {
    const body = { facilityId, name: 'Round', schedule: '0 9 * * *', ...more };
    const created = await service.api.post('/Schedules').set(PARTNER).send(body).expect(201);
    await eventually(async () => expect(await query('SELECT 1 FROM task.outbox')).toEqual([]));
    return (created.body as { scheduleId: string }).scheduleId;
  };

  beforeAll(async () => {
    service = await startTaskService();
    await service.watch(ScheduleCreatedEvent);
  });
  afterEach(() =>
    query('TRUNCATE task.instances, task.released_instances, task.schedules, task.outbox, task.triggers'),
  );
  afterAll(() => service.close());

  it('generates instances of schedules whose event was lost, and changes nothing in a dry run', async () => {
    const [lost, sameFacility, ahead] = [
      await lostSchedule(901),
      await lostSchedule(901),
      await lostSchedule(902, { startDate: new Date(Date.now() + 5 * 86_400_000).toISOString() }),
    ];
    // A schedule without due instances within the horizon.
    const never = await lostSchedule(903, { schedule: '0 9 29 2 *' });
    const found = await reconcile();
    expect(found.map(({ id }) => id).toSorted()).toEqual([lost, sameFacility, ahead].toSorted());
    expect(found.map(({ id }) => id)).not.toContain(never);
    expect(found[0]).toMatchObject({
      problem: 'schedule without instances',
      repair: 'generation is requested',
    });
    expect(await query('SELECT 1 FROM task.outbox')).toEqual([]);

    expect(await reconcile('--apply')).toHaveLength(3);
    await eventually(async () => {
      expect(await instances(lost)).toBe(30);
      expect(await instances(sameFacility)).toBe(30);
      expect(await instances(ahead)).toBeGreaterThan(20);
    });
    expect(await reconcile('--apply')).toEqual([]);
    expect(await instances(lost)).toBe(30);
  });

  it('requests generation for a facility with a trigger whose fire was lost', async () => {
    const scheduleId = await lostSchedule(904);
    await reconcile('--apply');
    await eventually(async () => expect(await instances(scheduleId)).toBe(30));
    await query(`DELETE FROM task.instances WHERE due_at > now() + interval '1 day'`);
    await query(`UPDATE task.schedules SET generated_until = now() - interval '1 hour'`);
    // Without a trigger, generation is complete.
    expect(await reconcile()).toEqual([]);
    await query(
      `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
       VALUES (904, 'Facility-904', 'g', 'j', '0 3 1 * *', 'UTC', now() + interval '20 days')`,
    );
    const found = await reconcile('--apply');
    expect(found).toEqual([
      expect.objectContaining({ problem: 'schedule without instances', id: scheduleId }),
      expect.objectContaining({
        problem: 'trigger without business unit',
        id: 'Facility-904',
        facilityId: 904,
      }),
    ]);
    await eventually(async () => expect(await instances(scheduleId)).toBeGreaterThanOrEqual(30));
  });

  it('cancels future instances of schedules that are not Active', async () => {
    const scheduleId = await lostSchedule(905);
    await reconcile('--apply');
    await eventually(async () => expect(await instances(scheduleId)).toBe(30));
    await query(`UPDATE task.schedules SET status = 'Paused'`);
    expect(await reconcile()).toEqual([
      expect.objectContaining({ problem: 'instances of a schedule that is not Active', id: scheduleId }),
    ]);
    await reconcile('--apply');
    expect(await query(`SELECT DISTINCT status, cancellation_cause AS cause FROM task.instances`)).toEqual([
      { status: 'Cancelled', cause: 'Pause' },
    ]);
    expect(await reconcile()).toEqual([]);
  });

  it('applies the calendar again if instances are due on its dates', async () => {
    const day = (offset: number): string =>
      new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
    const calendarId = randomUUID();
    const calendar = service.api.put(`/Calendars/${calendarId}`).set(PARTNER);
    await calendar.send({ name: 'Holidays', excludedDates: [] }).expect(200);
    const schedules: string[] = [];
    for (const facilityId of [906, 906, 907]) {
      // In this time zone, 09:00 UTC is on another date.
      const far = { timeZone: 'Pacific/Kiritimati', schedule: '0 23 * * *', calendarId };
      schedules.push(await lostSchedule(facilityId, far));
    }
    const sound = await lostSchedule(908);
    await reconcile('--apply');
    for (const id of [...schedules, sound])
      await eventually(async () => expect(await instances(id)).toBeGreaterThanOrEqual(29));
    // Simulates another release that generated with the old dates but recorded the new revision.
    await query(
      `UPDATE task.calendars SET excluded_dates = $2, revision = revision + 1, changed_at = now() - interval '1 hour' WHERE calendar_id = $1`,
      calendarId,
      [day(5), day(7)],
    );
    await query(
      'UPDATE task.schedules SET calendar_revision = (SELECT revision FROM task.calendars WHERE calendar_id = $1) WHERE calendar_id = $1',
      calendarId,
    );
    const found = await reconcile();
    expect(found.map(({ id }) => id).toSorted()).toEqual(schedules.toSorted());
    expect(found[0]).toMatchObject({
      problem: 'instances on dates of the calendar',
      repair: 'the calendar is followed anew',
    });
    expect(await reconcile('--apply')).toHaveLength(3);
    await eventually(async () => {
      const left = await query(
        `SELECT due_at FROM task.instances WHERE status = 'Pending' AND schedule_id <> $2
         AND to_char(due_at AT TIME ZONE 'Pacific/Kiritimati', 'YYYY-MM-DD') = ANY ($1)`,
        [day(5), day(7)],
        sound,
      );
      expect(left).toEqual([]);
      expect(await reconcile()).toEqual([]);
    });
    expect(await instances(sound)).toBe(30);
  });

  it('repairs each schedule independently: a failure of one does not stop the others', async () => {
    const facilities = [911, 912, 913, 914, 915];
    const lost = new Map<number, string>();
    for (const facilityId of facilities) lost.set(facilityId, await lostSchedule(facilityId));
    const shuffled = facilities.toSorted(() => Math.random() - 0.5);
    const [unreadable, refused, inactive, ...others] = shuffled as [number, number, number, number, number];
    await query(`UPDATE task.schedules SET time_zone = 'Mars/X' WHERE facility_id = $1`, unreadable);
    await query(
      `ALTER TABLE task.outbox ADD CONSTRAINT broken CHECK (facility_id <> ${String(refused)}) NOT VALID`,
    );
    await query(
      `INSERT INTO task.instances (task_instance_id, schedule_id, facility_id, name, due_at, status)
       SELECT gen_random_uuid(), schedule_id, facility_id, name, now() + interval '1 day', 'Pending'
       FROM task.schedules WHERE facility_id = $1`,
      inactive,
    );
    await query(`UPDATE task.schedules SET status = 'Paused' WHERE facility_id = $1`, inactive);

    const found = await reconcile('--apply');
    await query('ALTER TABLE task.outbox DROP CONSTRAINT broken');
    const repairOf = (facilityId: number) => found.find(({ id }) => id === lost.get(facilityId))?.repair;
    expect(repairOf(refused)).toMatch(/^failed: /);
    expect(repairOf(inactive)).toBe('they are cancelled');
    for (const facilityId of others) {
      expect(repairOf(facilityId)).toBe('generation is requested');
      await eventually(async () => expect(await instances(lost.get(facilityId) as string)).toBe(30));
    }
    expect(found).toContainEqual(
      expect.objectContaining({ problem: 'schedule that cannot be evaluated', facilityId: unreadable }),
    );
  });

  it.each([
    ['WAITING', '0 3 1 1 *', 'Mars/X', '1 hour'],
    ['WAITING', '0 3 1 1 *', 'Mars/X', '200 days'],
    ['PAUSED', '61 * * * *', 'UTC', '1 day'],
  ])(
    'reports a trigger in %s that cannot be evaluated, %s %s, before it fires',
    async (state, cron, zone, left) => {
      await query(
        `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at, state)
       SELECT facility, 'Facility-' || facility, 'g', 'j',
         CASE facility WHEN 910 THEN $1 ELSE '0 3 * * *' END, CASE facility WHEN 910 THEN $2 ELSE 'UTC' END,
         now() + $3::interval, $4
       FROM generate_series(909, 911) AS facility`,
        cron,
        zone,
        left,
        state,
      );
      const found = await reconcile('--apply');
      expect(found.filter(({ problem }) => problem === 'trigger that cannot be evaluated')).toEqual([
        expect.objectContaining({
          facilityId: 910,
          id: 'Facility-910',
          repair: expect.stringMatching(/^none: .*; schedule the generation of the facility anew$/),
        }),
      ]);
    },
  );

  it('reports events of a type that this release does not know', async () => {
    const id = randomUUID();
    await query(
      `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
       VALUES (3, 906, $1, 'TaskInstanceTeleported', now(), '{}', '{}')`,
      id,
    );
    expect(await reconcile('--apply')).toEqual([
      expect.objectContaining({ problem: 'event of an unknown type', facilityId: 906, id }),
    ]);
  });

  it('runs periodically on one replica at a time, and ignores events that may still arrive', async () => {
    const job = service.app.get(ReconciliationJob);
    const scheduleId = await lostSchedule(907);
    expect(await job.run()).toBe(0);
    await query(
      `UPDATE task.schedules SET created_at = created_at - interval '2 hours', generated_until = generated_until - interval '2 hours'`,
    );
    const other = service.app.get(DataSource).createQueryRunner();
    await other.startTransaction();
    expect(await service.app.get(ReconciliationRepository).lock(other.manager, true)).toBe(true);
    expect(await job.run()).toBe(0);
    await other.rollbackTransaction();
    await other.release();
    expect(await job.run()).toBe(1);
    await eventually(async () => expect(await instances(scheduleId)).toBeGreaterThanOrEqual(30));
    expect(await job.run()).toBe(0);
  });
});
