import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { batched, queryPrepared } from '@platform/database';
import { Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { FacilityScope } from '../access/caller-scope.service';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import type { NewOutboxMessage } from '../outbound/outbox-message.entity';
import { SCHEDULE_STATUSES, Schedule } from './schedule.entity';
import type { ScheduleStatus } from './schedule.entity';

export interface NewSchedule extends Omit<
  Schedule,
  'status' | 'createdAt' | 'generatedUntil' | 'revision' | 'calendarRevision'
> {
  /** The first instant at which it may be due. */
  readonly startsAt: Date | null;
}

export interface ScheduleCreation {
  readonly schedule: NewSchedule;
  readonly event: NewOutboxMessage;
}

/** What a caller can change of a schedule. */
export type ScheduleChange = Partial<
  Pick<
    Schedule,
    | 'name'
    | 'description'
    | 'schedule'
    | 'timeZone'
    | 'startDate'
    | 'endDate'
    | 'calendarId'
    | 'template'
    | 'status'
  >
>;

/** An Active schedule with the dates of its calendar. */
export interface GeneratingSchedule extends Pick<
  Schedule,
  'scheduleId' | 'schedule' | 'timeZone' | 'startDate' | 'endDate' | 'calendarId' | 'generatedUntil'
> {
  readonly excludedDates: readonly string[] | null;
  /** The calendar's, null without one. */
  readonly calendarRevision: number | null;
  /** The calendar has changed since the instances to come were generated. */
  readonly isCalendarStale: boolean;
}

export interface ScheduleListing {
  readonly scope: FacilityScope;
  readonly status: ScheduleStatus | undefined;
  /** Position of the last row of the page before; empty for the first page. */
  readonly after: readonly unknown[];
  readonly limit: number;
}

// By hand: one statement for two tables, and hot. Nothing before its creation or its start is ever generated; the millisecond makes the start
// itself count. The event tells the instant that the schedule has, which the database decides. In the order of the idempotency keys, so
// that two replicas that store the same ones do not wait for each other crosswise. Those that are stored at the same moment do not count
// each other: the limit of a facility may be passed by a few. OFFSET 0 keeps the state out of the choice of an index: a plan made while the
// table was small would read the Active ones of all facilities.
const INSERT = {
  name: 'insert-schedules',
  text: `
  WITH request AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS r ("scheduleId" uuid, "facilityId" bigint, name text, description text, schedule text,
      "timeZone" text, "startDate" text, "endDate" text, "calendarId" uuid, template text, "startsAt" timestamptz, "createdBySubject" text, "createdByPersonId" bigint,
      "createdByName" text, "createdByPersona" smallint, "idempotencyKey" text, "requestDigest" text, partition smallint,
      "messageId" uuid, "messageType" text, "conversationId" text, "sentAt" timestamptz, "traceHeaders" json, message jsonb)
  ), created AS (
    INSERT INTO task.schedules (schedule_id, facility_id, name, description, schedule, time_zone, start_date, end_date, calendar_id, template,
      generated_until, created_by_subject, created_by_person_id, created_by_name, created_by_persona, idempotency_key,
      request_digest)
    SELECT "scheduleId", "facilityId", name, description, schedule, "timeZone", "startDate", "endDate", "calendarId", template,
      greatest("startsAt" - interval '1 millisecond', now()), "createdBySubject", "createdByPersonId", "createdByName",
      "createdByPersona", "idempotencyKey", "requestDigest"
    FROM request
    WHERE (SELECT count(*) FROM (
      SELECT 1 FROM (SELECT status FROM task.schedules WHERE facility_id = request."facilityId" OFFSET 0) AS mine
      WHERE status = 'Active' LIMIT $2) AS active) < $2
    ORDER BY "createdBySubject", "idempotencyKey"
    ON CONFLICT DO NOTHING
    RETURNING *
  ), stored AS (
    INSERT INTO task.outbox (partition, facility_id, message_id, message_type, conversation_id, sent_at, trace_headers, message)
    SELECT r.partition, r."facilityId", r."messageId", r."messageType", r."conversationId", r."sentAt", r."traceHeaders",
      r.message || jsonb_build_object('createdAtUtc',
        to_char(c.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    FROM created c JOIN request r ON r."scheduleId" = c.schedule_id
  )
  SELECT schedule_id AS "scheduleId", facility_id::float8 AS "facilityId", name, description, schedule, time_zone AS "timeZone",
    start_date AS "startDate", end_date AS "endDate", calendar_id AS "calendarId", template, revision::float8 AS revision, status, created_at AS "createdAt", created_by_person_id::float8 AS "createdByPersonId",
    created_by_name AS "createdByName", created_by_persona AS "createdByPersona"
  FROM created`,
};

/** Before every schedule. */
const START = ['-infinity', '00000000-0000-0000-0000-000000000000'];

/** The schedules of a page: for each status or facility the first of its range, and of these the first. Each range is read by an
 *  index in its order, as in the list of instances. A facility has few schedules, so that a filter among them is cheap. */
const pageOf = (source: string, column: string, wanted: string, filter: string): string => `
  schedule.scheduleId = ANY (ARRAY(
    SELECT ranged.id FROM ${source} CROSS JOIN LATERAL (
      SELECT created_at, schedule_id AS id FROM task.schedules
      WHERE (${column}, created_at, schedule_id) > (${wanted}, :createdAt::timestamptz, :scheduleId::uuid)
        AND ${column} <= ${wanted} AND ${filter}
      ORDER BY ${column}, created_at, schedule_id
      LIMIT :limit) AS ranged
    ORDER BY created_at, id
    LIMIT :limit))`;

const PAGE_OF_ALL = pageOf(
  'unnest(:statuses::text[]) AS wanted (status_key)',
  'status',
  'wanted.status_key',
  'true',
);
const PAGE_OF_FACILITIES = pageOf(
  'unnest(:facilities::bigint[]) AS mine (facility_key)',
  'facility_id',
  'mine.facility_key',
  'status = ANY (:statuses)',
);

// In one order, so that two generations never wait for each other.
const LOCK_FOR_GENERATION = `
  SELECT schedule_id AS "scheduleId", schedule, time_zone AS "timeZone", start_date AS "startDate", end_date AS "endDate",
    calendar_id AS "calendarId", generated_until AS "generatedUntil", excluded_dates AS "excludedDates",
    calendar.revision::float8 AS "calendarRevision",
    schedule.calendar_revision IS DISTINCT FROM calendar.revision AS "isCalendarStale"
  FROM task.schedules AS schedule LEFT JOIN task.calendars AS calendar USING (calendar_id)
  WHERE status = 'Active' AND ($1::uuid IS NULL OR schedule_id = $1) AND facility_id = $2
    AND (generated_until < $3 OR schedule.calendar_revision IS DISTINCT FROM calendar.revision)
  ORDER BY schedule_id
  FOR NO KEY UPDATE OF schedule`;

// By hand: a batch in one statement.
const MARK_GENERATED = `
  UPDATE task.schedules AS schedule
  SET generated_until = done.until, calendar_revision = done.calendar_revision
  FROM unnest($1::uuid[], $2::timestamptz[], $3::bigint[]) AS done (schedule_id, until, calendar_revision)
  WHERE schedule.schedule_id = ANY ($1) AND schedule.schedule_id = done.schedule_id`;

/** Every statement on `task.schedules`. */
@Injectable()
export class SchedulesRepository {
  /** Stores a schedule and, with its instant of creation, its event: one statement that is a transaction by itself, for all that arrive in one turn of the event
   *  loop. Null, and nothing is stored, when the id or the caller's idempotency key is there already, or the
   *  facility has as many active schedules as it may have. */
  readonly insert: (creation: ScheduleCreation) => Promise<Schedule | null>;

  constructor(
    @InjectRepository(Schedule) private readonly schedules: Repository<Schedule>,
    @Inject(TASK_CONFIG) private readonly config: Pick<TaskServiceConfig, 'SCHEDULES_PER_FACILITY'>,
  ) {
    this.insert = batched((creations) => this.insertAll(creations));
  }

  find(scheduleId: string): Promise<Schedule | null> {
    return this.schedules.findOneBy({ scheduleId });
  }

  /** The schedule that an earlier attempt at the same request stored, with its digest: recognised by its id after a commit whose
   *  confirmation was lost, or by the caller's idempotency key. */
  findCreated({ scheduleId, createdBySubject, idempotencyKey }: NewSchedule): Promise<Schedule | null> {
    return this.schedules
      .createQueryBuilder('schedule')
      .addSelect('schedule.requestDigest')
      .where('schedule.scheduleId = :scheduleId', { scheduleId })
      .orWhere(
        '(schedule.createdBySubject = :createdBySubject AND schedule.idempotencyKey = :idempotencyKey)',
      )
      .setParameters({ createdBySubject, idempotencyKey })
      .getOne();
  }

  /** Schedules of the facilities in scope, oldest first, after the given position. */
  list({ scope, status, after, limit }: ScheduleListing): Promise<Schedule[]> {
    const [createdAt, scheduleId] = after.length === 0 ? START : after;
    return this.schedules
      .createQueryBuilder('schedule')
      .where(scope === 'all' ? PAGE_OF_ALL : PAGE_OF_FACILITIES)
      .setParameters({
        ...{ createdAt, scheduleId, limit },
        statuses: status === undefined ? SCHEDULE_STATUSES : [status],
        facilities: scope === 'all' ? [] : [...new Set(scope)],
      })
      .orderBy('schedule.createdAt')
      .addOrderBy('schedule.scheduleId')
      .getMany();
  }

  private async insertAll(creations: readonly ScheduleCreation[]): Promise<(Schedule | null)[]> {
    const requests = creations.map(({ schedule, event }) => ({ ...event, ...schedule }));
    const { dataSource } = this.schedules.manager;
    const rows = await queryPrepared<Schedule>(dataSource, INSERT, [
      JSON.stringify(requests),
      this.config.SCHEDULES_PER_FACILITY,
    ]);
    const created = new Map(rows.map((row) => [row.scheduleId, row]));
    return creations.map(({ schedule }) => created.get(schedule.scheduleId) ?? null);
  }

  /** Reads the schedule and keeps everybody else from changing it, and from generating by it, until the transaction ends; with the
   *  database's time. */
  async findAndLock(
    manager: EntityManager,
    scheduleId: string,
  ): Promise<{ schedule: Schedule; now: Date } | null> {
    const { entities, raw } = await manager
      .createQueryBuilder(Schedule, 'schedule')
      .addSelect('now()', 'now')
      .where('schedule.scheduleId = :scheduleId', { scheduleId })
      .setLock('for_no_key_update')
      .getRawAndEntities<{ now: Date }>();
    const [[schedule], [row]] = [entities, raw];
    return schedule && row ? { schedule, now: row.now } : null;
  }

  /** Active schedules of the facility, counted up to `limit`. */
  async countActive(manager: EntityManager, facilityId: number, limit: number): Promise<number> {
    const found = await manager.find(Schedule, {
      ...{ select: { scheduleId: true }, where: { facilityId, status: 'Active' }, take: limit },
    });
    return found.length;
  }

  /** Changes a locked schedule; its revision is the next one. */
  async change(manager: EntityManager, schedule: Schedule, change: ScheduleChange): Promise<Schedule> {
    const changed = { ...change, revision: schedule.revision + 1 };
    await manager.update(Schedule, { scheduleId: schedule.scheduleId }, changed);
    return { ...schedule, ...changed };
  }

  /** Locks the Active schedules of a facility, or one of them, that are not generated up to `until` or by the dates that their calendar has
   *  now; without `until` all. */
  lockForGeneration(
    manager: EntityManager,
    { facilityId, scheduleId }: { facilityId: number; scheduleId?: string | undefined },
    until: Date | null,
  ): Promise<GeneratingSchedule[]> {
    return manager.query(LOCK_FOR_GENERATION, [scheduleId ?? null, facilityId, until ?? 'infinity']);
  }

  /** Notes how far, and by which calendar, the locked schedules have been generated. */
  async markGenerated(
    manager: EntityManager,
    done: readonly Pick<Schedule, 'scheduleId' | 'generatedUntil' | 'calendarRevision'>[],
  ): Promise<void> {
    await manager.query(MARK_GENERATED, [
      done.map(({ scheduleId }) => scheduleId),
      done.map(({ generatedUntil }) => generatedUntil),
      done.map(({ calendarRevision }) => calendarRevision),
    ]);
  }
}
