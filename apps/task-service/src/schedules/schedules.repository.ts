import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { batched, queryPrepared } from '@platform/database';
import { Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { FacilityScope } from '../access/caller-scope.service';
import type { NewOutboxMessage } from '../outbound/outbox-message.entity';
import { SCHEDULE_STATUSES, Schedule } from './schedule.entity';
import type { ScheduleStatus } from './schedule.entity';

/** A schedule to be stored. */
export interface NewSchedule extends Omit<Schedule, 'status' | 'createdAt' | 'generatedUntil'> {
  /** The first instant at which it may be due. */
  readonly startsAt: Date | null;
}

/** A schedule to be stored, with the event of its creation. */
export interface ScheduleCreation {
  readonly schedule: NewSchedule;
  readonly event: NewOutboxMessage;
}

/** An Active schedule and the instants up to which its instances are wanted. */
export interface GeneratingSchedule extends Pick<
  Schedule,
  'scheduleId' | 'schedule' | 'timeZone' | 'generatedUntil'
> {
  /** Now plus the horizon, by the database's clock. */
  readonly horizonAt: Date;
}

/** Which schedules a list shows. */
export interface ScheduleListing {
  readonly scope: FacilityScope;
  readonly status: ScheduleStatus | undefined;
  /** Position of the last row of the page before; empty for the first page. */
  readonly after: readonly unknown[];
  readonly limit: number;
}

// By hand: one statement for two tables, and hot. Nothing before its creation or its start is ever generated; the millisecond makes the start
// itself count. The event tells the instant that the schedule has, which the database decides. In the order of the idempotency keys, so
// that two replicas that store the same ones do not wait for each other crosswise.
const INSERT = {
  name: 'insert-schedules',
  text: `
  WITH request AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS r ("scheduleId" uuid, "facilityId" bigint, name text, description text, schedule text,
      "timeZone" text, "startDate" text, template text, "startsAt" timestamptz, "createdBySubject" text, "createdByPersonId" bigint,
      "createdByName" text, "createdByPersona" smallint, "idempotencyKey" text, "requestDigest" text, partition smallint,
      "messageId" uuid, "messageType" text, "conversationId" text, "sentAt" timestamptz, "traceHeaders" json, message jsonb)
  ), created AS (
    INSERT INTO task.schedules (schedule_id, facility_id, name, description, schedule, time_zone, start_date, template,
      generated_until, created_by_subject, created_by_person_id, created_by_name, created_by_persona, idempotency_key,
      request_digest)
    SELECT "scheduleId", "facilityId", name, description, schedule, "timeZone", "startDate", template,
      greatest("startsAt" - interval '1 millisecond', now()), "createdBySubject", "createdByPersonId", "createdByName",
      "createdByPersona", "idempotencyKey", "requestDigest"
    FROM request ORDER BY "createdBySubject", "idempotencyKey"
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
    start_date AS "startDate", status, created_at AS "createdAt", created_by_person_id::float8 AS "createdByPersonId",
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

// In one order, so that two generations never wait for each other. What is more than a horizon in the past, e.g. after a
// long pause, is not made up for.
const LOCK_FOR_GENERATION = `
  SELECT schedule_id AS "scheduleId", schedule, time_zone AS "timeZone",
    greatest(generated_until, now() - make_interval(days => $3)) AS "generatedUntil",
    now() + make_interval(days => $3) AS "horizonAt"
  FROM task.schedules
  WHERE status = 'Active' AND ($1::uuid IS NULL OR schedule_id = $1) AND facility_id = $2
    AND generated_until < now() + make_interval(days => $3)
  ORDER BY schedule_id
  FOR NO KEY UPDATE`;

/** Every statement on `task.schedules`. */
@Injectable()
export class SchedulesRepository {
  /** Stores a schedule and, with its instant of creation, its event: one statement that is a transaction by itself, for all that arrive in one turn of the event
   *  loop. Null, and nothing is stored, when the id or the caller's idempotency key is there already. */
  readonly insert: (creation: ScheduleCreation) => Promise<Schedule | null>;

  constructor(@InjectRepository(Schedule) private readonly schedules: Repository<Schedule>) {
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
    const rows = await queryPrepared<Schedule>(dataSource, INSERT, [JSON.stringify(requests)]);
    const created = new Map(rows.map((row) => [row.scheduleId, row]));
    return creations.map(({ schedule }) => created.get(schedule.scheduleId) ?? null);
  }

  /** Locks the Active schedules of a facility, or one of them, that are not generated up to the horizon yet. */
  lockForGeneration(
    manager: EntityManager,
    { facilityId, scheduleId }: { facilityId: number; scheduleId?: string | undefined },
    horizonDays: number,
  ): Promise<GeneratingSchedule[]> {
    return manager.query(LOCK_FOR_GENERATION, [scheduleId ?? null, facilityId, horizonDays]);
  }

  /** Notes how far the locked schedules have been generated. */
  async markGenerated(
    manager: EntityManager,
    scheduleIds: readonly string[],
    generatedUntil: Date,
  ): Promise<void> {
    await manager
      .createQueryBuilder()
      .update(Schedule)
      .set({ generatedUntil })
      .where('schedule_id = ANY (:scheduleIds::uuid[])', { scheduleIds })
      .execute();
  }
}
