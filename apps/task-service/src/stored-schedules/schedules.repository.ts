import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { batched, CLOCK_STEP_SECONDS, queryPrepared } from '@platform/database';
import { In, IsNull, Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { FacilityScope } from '../access/caller-scope.service';
import { connectionsForCreations, TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import type { NewOutboxMessage } from '../outbound/outbox-message.entity';
import { Release } from './release.entity';
import { fewOf, pageOfFewRanges, pageOfManyRanges } from '../paging/page-of-ranges';
import { SCHEDULE_STATUSES, type ScheduleStatus } from './schedule-states';
import { Schedule } from './schedule.entity';

/** Members that the database sets when a schedule is stored, or later. */
type StoredMembers =
  | ('status' | 'createdAt' | 'generatedUntil' | 'revision' | 'calendarRevision' | 'templateId')
  | ('endedAt' | 'removedAt' | 'error' | 'changesSince' | 'changeCount');

export interface NewSchedule extends Omit<Schedule, StoredMembers> {
  /** First instant at which it may be due. */
  readonly startsAt: Date | null;
}

export interface ScheduleCreation {
  readonly schedule: NewSchedule;
  readonly event: NewOutboxMessage;
}

/** Members of a schedule that commands can change. */
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
    | 'removedAt'
  >
>;

type CreationConfig = Parameters<typeof connectionsForCreations>[0] &
  Pick<TaskServiceConfig, 'SCHEDULES_PER_FACILITY' | 'SCHEDULE_CREATIONS_PER_HOUR'>;

/** Number of changes in the counted hour. */
export type ChangeCount = Pick<Schedule, 'changesSince' | 'changeCount'>;

/** A schedule with the members that callers see. */
export interface ScheduleView extends Schedule {
  /** Number of instances that its last change has still to cancel. */
  readonly releasing: number;
}

export interface ScheduleListing {
  readonly scope: FacilityScope;
  readonly status: ScheduleStatus | undefined;
  /** Position of the previous page's last row; empty for the first page. */
  readonly after: readonly unknown[];
  readonly limit: number;
}

/**
 * Condition: created within the last hour. A date up to CLOCK_STEP_SECONDS ahead counts too, because the
 * clock may have stepped back by that much. A later date comes from a wrong clock and is ignored.
 */
const IS_RECENT = `created_at > now() - interval '1 hour' AND created_at <= now() + interval '${String(CLOCK_STEP_SECONDS)} seconds'`;

/**
 * Revision of a change: its time in microseconds since 1970. A failover that loses commits would set a
 * counter back, and an ETag could be issued twice.
 */
const CHANGE_REVISION = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';

// Hand-written SQL: one statement for two tables, on the hot path.
// - Generation starts at the creation or at the start, whichever is later. One millisecond is subtracted so
//   that the start itself counts.
// - The event gets the creation time of the row, which the database decides.
// - Rows are inserted in the order of the idempotency keys, so that two replicas that store the same keys do
//   not deadlock.
// - Concurrent statements do not see each other's rows, so a few may exceed a limit of the facility.
// - Active schedules are counted in the order of the index that contains only those, so that no plan reads
//   the schedules of all facilities, or removed ones.
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
      SELECT 1 FROM task.schedules WHERE facility_id = request."facilityId" AND status = 'Active' AND ended_at IS NULL
      ORDER BY created_at, schedule_id LIMIT $2) AS active) < $2
      AND (SELECT count(*) FROM (
        SELECT 1 FROM task.schedules WHERE facility_id = request."facilityId" AND ${IS_RECENT}
        LIMIT $3) AS recent) < $3
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
    start_date AS "startDate", end_date AS "endDate", calendar_id AS "calendarId", template, revision::float8 AS revision, status, ended_at AS "endedAt", error, created_at AS "createdAt", created_by_person_id::float8 AS "createdByPersonId",
    created_by_name AS "createdByName", created_by_persona AS "createdByPersona"
  FROM created`,
};

// Hand-written SQL: $2 schedules are allowed per hour, so another may be created when the $2-th newest is an
// hour old. Returns that instant, and reads no older schedules.
const NEXT_CREATION = `
  SELECT created_at + interval '1 hour' AS at FROM task.schedules
  WHERE facility_id = $1 AND ${IS_RECENT}
  ORDER BY created_at DESC, schedule_id DESC
  OFFSET $2 - 1 LIMIT 1`;

/** Sorts before every schedule. */
const START = ['-infinity', '00000000-0000-0000-0000-000000000000'];

const SCHEDULES = { table: 'task.schedules', instant: 'created_at', id: 'schedule_id' } as const;

/** Ended and other Active schedules are in the same range. The filter separates them by index columns. */
const PAGE_OF_ALL = pageOfFewRanges({
  ...SCHEDULES,
  sources: 'unnest(:statuses::text[]) AS wanted (status_key)',
  columns: ['status'],
  keys: ['status_key'],
  filter: '(:isEnded::boolean IS NULL OR (ended_at IS NOT NULL) = :isEnded::boolean)',
});
/**
 * Builds the SQL for a page of the schedules of facilities.
 * @param filter predicate of the partial index for one state
 */
const pageOfFacilities = (filter?: string): string =>
  pageOfManyRanges({
    ...SCHEDULES,
    sources: 'unnest(:facilities::bigint[]) AS mine (facility_key)',
    columns: ['facility_id'],
    keys: ['facility_key'],
    filter,
  });
const PAGE_OF_FACILITIES = pageOfFacilities();
const PAGES_IN_STATE: Readonly<Record<ScheduleStatus, string>> = {
  Active: pageOfFacilities(`status = 'Active' AND ended_at IS NULL`),
  Ended: pageOfFacilities(`status = 'Active' AND ended_at IS NOT NULL`),
  Paused: pageOfFacilities(`status = 'Paused'`),
  Removed: pageOfFacilities(`status = 'Removed'`),
};

/**
 * Reads, creates and changes schedules. The statements of generation are in
 * `generating-schedules.repository`, those of reconciliation and of releases in their repositories.
 */
@Injectable()
export class SchedulesRepository {
  /**
   * Stores all creations that arrive in one turn of the event loop with one statement, which is a transaction
   * by itself.
   */
  private readonly insertInBatch: (creation: ScheduleCreation) => Promise<Schedule | null>;

  constructor(
    @InjectRepository(Schedule) private readonly schedules: Repository<Schedule>,
    @Inject(TASK_CONFIG) private readonly config: CreationConfig,
  ) {
    const atOnce = connectionsForCreations(config);
    this.insertInBatch = batched((creations) => this.insertAll(creations), { atOnce });
  }

  /**
   * Stores a schedule with its event, in a batch with others. A schedule with a calendar is stored
   * separately, so that a lock on the calendar delays no others.
   * @returns null, with nothing stored, if the id or the caller's idempotency key exists already, or the
   * facility has reached its limit of active schedules or of new schedules per hour
   */
  async insert(creation: ScheduleCreation): Promise<Schedule | null> {
    if (creation.schedule.calendarId === null) return this.insertInBatch(creation);
    return (await this.insertAll([creation]))[0] ?? null;
  }

  /** Returns when the next schedule of the facility may be created; null if one may be created now. */
  async nextCreationAt(facilityId: number): Promise<Date | null> {
    const rows = await this.schedules.query<{ at: Date | null }[]>(NEXT_CREATION, [
      facilityId,
      this.config.SCHEDULE_CREATIONS_PER_HOUR,
    ]);
    return rows[0]?.at ?? null;
  }

  find(scheduleId: string): Promise<Schedule | null> {
    return this.schedules.findOneBy({ scheduleId });
  }

  /** Returns the facility of a schedule, or null if there is no such schedule. */
  async facilityOf(scheduleId: string): Promise<number | null> {
    const found = await this.schedules.findOne({ select: { facilityId: true }, where: { scheduleId } });
    return found?.facilityId ?? null;
  }

  /** Returns a schedule as callers see it, or null. Reads in the transaction of `manager` if given. */
  async show(scheduleId: string, manager = this.schedules.manager): Promise<ScheduleView | null> {
    const schedule = await manager.findOneBy(Schedule, { scheduleId });
    return schedule && ((await this.viewsOf([schedule], manager))[0] ?? null);
  }

  /** Adds the number of instances that the last change has still to cancel. */
  private async viewsOf(schedules: readonly Schedule[], manager: EntityManager): Promise<ScheduleView[]> {
    const scheduleIds = schedules.map(({ scheduleId }) => scheduleId);
    const releases =
      scheduleIds.length === 0 ? [] : await manager.findBy(Release, { scheduleId: In(scheduleIds) });
    const remaining = new Map(releases.map((release) => [release.scheduleId, release.remaining]));
    return schedules.map((each) => ({ ...each, releasing: remaining.get(each.scheduleId) ?? 0 }));
  }

  /**
   * Returns the schedule that an earlier attempt at the same request stored, with its digest; null if there
   * is none. It is found by its id, after a commit whose confirmation was lost, or by the caller's
   * idempotency key.
   */
  async findCreated({
    scheduleId,
    createdBySubject,
    idempotencyKey,
  }: NewSchedule): Promise<ScheduleView | null> {
    const created = await this.schedules
      .createQueryBuilder('schedule')
      .addSelect('schedule.requestDigest')
      .where('schedule.scheduleId = :scheduleId', { scheduleId })
      .orWhere(
        '(schedule.createdBySubject = :createdBySubject AND schedule.idempotencyKey = :idempotencyKey)',
      )
      .setParameters({ createdBySubject, idempotencyKey })
      .getOne();
    return created && ((await this.viewsOf([created], this.schedules.manager))[0] ?? null);
  }

  /** Returns the schedules of the facilities in scope, oldest first, after the given position. */
  async list({ scope, status, after, limit }: ScheduleListing): Promise<ScheduleView[]> {
    const [afterInstant, afterId] = after.length === 0 ? START : after;
    const stored = status === 'Ended' ? 'Active' : status;
    const idsOfFacilities = status === undefined ? PAGE_OF_FACILITIES : PAGES_IN_STATE[status];
    const found = await this.schedules
      .createQueryBuilder('schedule')
      .where(`schedule.scheduleId = ANY (${scope === 'all' ? PAGE_OF_ALL : idsOfFacilities})`)
      .setParameters({
        afterInstant,
        afterId,
        beforeInstant: 'infinity',
        limit,
        few: fewOf(limit),
        statuses: stored === undefined ? SCHEDULE_STATUSES : [stored],
        isEnded: status === undefined ? null : status === 'Ended',
        facilities: scope === 'all' ? [] : [...new Set(scope)],
      })
      .orderBy('schedule.createdAt')
      .addOrderBy('schedule.scheduleId')
      .getMany();
    return this.viewsOf(found, this.schedules.manager);
  }

  private async insertAll(creations: readonly ScheduleCreation[]): Promise<(Schedule | null)[]> {
    const requests = creations.map(({ schedule, event }) => ({ ...event, ...schedule }));
    const { dataSource } = this.schedules.manager;
    const rows = await queryPrepared<Schedule>(dataSource, INSERT, [
      JSON.stringify(requests),
      this.config.SCHEDULES_PER_FACILITY,
      this.config.SCHEDULE_CREATIONS_PER_HOUR,
    ]);
    const created = new Map(rows.map((row) => [row.scheduleId, row]));
    return creations.map(({ schedule }) => created.get(schedule.scheduleId) ?? null);
  }

  /**
   * Locks a schedule until the transaction ends, and returns it. Changes and generation of it wait for the
   * lock.
   */
  findAndLock(manager: EntityManager, scheduleId: string): Promise<Schedule | null> {
    return manager
      .createQueryBuilder(Schedule, 'schedule')
      .where('schedule.scheduleId = :scheduleId', { scheduleId })
      .setLock('for_no_key_update')
      .getOne();
  }

  /** Counts the Active schedules of the facility, up to `limit`. */
  async countActive(manager: EntityManager, facilityId: number, limit: number): Promise<number> {
    const found = await manager.find(Schedule, {
      select: { scheduleId: true, createdAt: true },
      where: { facilityId, status: 'Active', endedAt: IsNull() },
      // The order of the index that contains only those.
      order: { createdAt: 'ASC', scheduleId: 'ASC' },
      take: limit,
    });
    return found.length;
  }

  /** Changes a locked schedule, which gets a new revision. */
  async change(
    manager: EntityManager,
    schedule: Schedule,
    change: ScheduleChange & ChangeCount,
  ): Promise<Schedule> {
    const { scheduleId } = schedule;
    const update = manager.createQueryBuilder().update(Schedule).where({ scheduleId }).returning('revision');
    const updated = await update.set({ ...change, revision: () => CHANGE_REVISION }).execute();
    const rows = updated.raw as { revision: string }[];
    return { ...schedule, ...change, revision: Number(rows[0]?.revision) };
  }
}
