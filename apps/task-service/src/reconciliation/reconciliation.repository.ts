import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { calendarsOf } from '../stored-schedules/generating-schedules.repository';
import type { GeneratingSchedule } from '../stored-schedules/generating-schedules.repository';

/** A schedule and its suspected inconsistency. If `suspicion` is null, `excludedDates` is null as well. */
export interface ExaminedSchedule extends GeneratingSchedule {
  readonly facilityId: number;
  readonly suspicion: 'nothing-generated' | 'inactive' | null;
  /** Whether it is Active and its calendar has not changed within the grace period. */
  readonly followsCalendar: boolean;
  readonly now: Date;
}

/** The span of an excluded date, in the time zone of the schedule. */
export interface ScheduleSpan {
  readonly scheduleId: string;
  readonly from: Date;
  /** End, exclusive. */
  readonly until: Date;
}

/** A trigger or an event that only an operator can judge. */
export interface Leftover {
  readonly facilityId: number;
  readonly id: string;
}

/** A trigger that is not in ERROR, and its settings. */
export interface FiringTrigger extends Leftover {
  readonly schedule: string;
  readonly timeZone: string;
}

/**
 * Key of the advisory lock that lets one process at a time reconcile. Any constant that no other code uses.
 */
const LOCK_KEY = 0x7265_636f;
const TRIGGERS_PER_PAGE = 10_000;
export const MAX_LEFTOVERS = 10_000;

// Hand-written SQL: one or two index probes per row, so that all schedules can be examined every hour. A
// sub-query with LIMIT is evaluated per row; EXISTS might scan the whole other table. Its ORDER BY matches
// the index: otherwise, where nearly all instances belong to one schedule, each probe might read them all. An
// Active schedule must have instances; if its facility has a waiting trigger, they must reach past now.
const EXAMINE = `
  SELECT schedule_id AS "scheduleId", facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone", start_date AS "startDate",
    end_date AS "endDate", calendar_id AS "calendarId", generated_until AS "generatedUntil",
    calendar.revision::float8 AS "calendarRevision", schedule.calendar_revision::float8 AS "generatedRevision", false AS "isCalendarStale", now() AS now,
    coalesce(status = 'Active' AND ended_at IS NULL AND calendar.changed_at < now() - $2::interval, false) AS "followsCalendar",
    CASE WHEN status <> 'Active' THEN
      (SELECT 'inactive' FROM ONLY task.instances AS due
        WHERE due.schedule_id = schedule.schedule_id AND due.due_at > now() AND due.status = 'Pending'
          AND (SELECT true FROM task.releases AS release WHERE release.schedule_id = schedule.schedule_id LIMIT 1) IS NULL
        ORDER BY due.due_at LIMIT 1)
    WHEN ended_at IS NULL AND created_at < now() - $2::interval AND generated_until < now() + $3::interval AND (
      (SELECT true FROM ONLY task.instances AS due WHERE due.schedule_id = schedule.schedule_id ORDER BY due.due_at LIMIT 1) IS NULL
      OR generated_until < now() - $2::interval AND
        (SELECT true FROM task.triggers WHERE triggers.facility_id = schedule.facility_id AND state = 'WAITING' LIMIT 1))
      THEN 'nothing-generated' END AS suspicion
  FROM task.schedules AS schedule LEFT JOIN task.calendars AS calendar USING (calendar_id)
  WHERE schedule_id > $1
  ORDER BY schedule_id
  LIMIT $4`;

const NEXT_SCHEDULE = `
  SELECT facility_id::float8 AS "facilityId", schedule_id AS id FROM task.schedules WHERE schedule_id > $1
  ORDER BY schedule_id LIMIT 1`;

/** Number of a calendar's next dates that are examined. Later dates are examined in later runs. */
const DATES_EXAMINED = 60;

// Hand-written SQL: a calendar may have thousands of dates. Starts with yesterday (UTC), which is still today
// in some time zones.
const NEXT_EXCLUDED_DATES = `
  SELECT calendar_id AS "calendarId", ARRAY(
    SELECT date FROM unnest(excluded_dates) AS date
    WHERE date COLLATE "C" >= to_char(now() AT TIME ZONE 'UTC' - interval '1 day', 'YYYY-MM-DD')
    ORDER BY date COLLATE "C" LIMIT ${String(DATES_EXAMINED)}) AS dates
  FROM task.calendars WHERE calendar_id = ANY ($1)`;

// Hand-written SQL: one index probe per span, for all schedules of a page at once. Skips schedules with an
// unfinished release, whose steps have not cancelled all instances yet.
const FIRST_PENDING_IN = `
  SELECT span.schedule_id AS "scheduleId", due.due_at AS "dueAt"
  FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) AS span (schedule_id, from_at, until_at),
    LATERAL (
      SELECT due_at FROM ONLY task.instances AS instance
      WHERE instance.schedule_id = span.schedule_id AND due_at >= greatest(from_at, now()) AND due_at < until_at AND status = 'Pending'
      ORDER BY due_at LIMIT 1
    ) AS due
  WHERE NOT EXISTS (SELECT 1 FROM task.releases AS release WHERE release.schedule_id = span.schedule_id)`;

const LOCK_INACTIVE = `
  SELECT status FROM task.schedules WHERE schedule_id = $1 AND status <> 'Active' FOR NO KEY UPDATE`;

const TRIGGERS_WITHOUT_BUSINESS_UNIT = `
  SELECT facility_id::float8 AS "facilityId", trigger_name AS id FROM task.triggers AS trigger
  WHERE NOT EXISTS (SELECT 1 FROM task.business_unit_facilities AS pair
    WHERE pair.facility_id = trigger.facility_id AND pair.is_active)
  ORDER BY facility_id LIMIT ${String(MAX_LEFTOVERS)}`;

const FIRING_TRIGGERS = `
  SELECT facility_id::float8 AS "facilityId", trigger_name AS id, schedule, time_zone AS "timeZone"
  FROM task.triggers WHERE facility_id > $1 AND state <> 'ERROR'
  ORDER BY facility_id LIMIT ${String(TRIGGERS_PER_PAGE)}`;

const EVENTS_OF_OTHER_TYPES = `
  SELECT facility_id::float8 AS "facilityId", message_id AS id FROM task.outbox
  WHERE parked_at IS NULL AND message_type <> ALL ($1::text[])
  ORDER BY partition, sequence LIMIT ${String(MAX_LEFTOVERS)}`;

/** Queries of reconciliation, across the service's tables. */
@Injectable()
export class ReconciliationRepository {
  constructor(@InjectDataSource() readonly dataSource: DataSource) {}

  /**
   * Locks out other processes that reconcile until the transaction ends. Returns false if another one is
   * running.
   * @param waits whether to wait for that one
   */
  async lock(manager: EntityManager, waits: boolean): Promise<boolean> {
    const lock = waits ? 'pg_advisory_xact_lock($1) IS NOT NULL' : 'pg_try_advisory_xact_lock($1)';
    const rows = await manager.query<{ isLocked: boolean }[]>(`SELECT ${lock} AS "isLocked"`, [LOCK_KEY]);
    return rows[0]?.isLocked ?? false;
  }

  /**
   * Returns the next schedules by id, at most `limit`.
   * @param graceMinutes minutes for which new rows are not suspected, because a message may still be on its
   * way
   */
  async examine(
    manager: EntityManager,
    after: string,
    { graceMinutes, horizonDays, limit }: { graceMinutes: number; horizonDays: number; limit: number },
  ): Promise<ExaminedSchedule[]> {
    const rows = await manager.query<Omit<ExaminedSchedule, 'excludedDates'>[]>(EXAMINE, [
      after,
      `${String(graceMinutes)} minutes`,
      `${String(horizonDays)} days`,
      limit,
    ]);
    const calendars = await calendarsOf(
      manager,
      rows.filter(({ suspicion }) => suspicion !== null),
    );
    return rows.map((row) => {
      const calendar = row.calendarId === null ? undefined : calendars.get(row.calendarId);
      return { ...row, excludedDates: calendar?.excludedDates ?? null };
    });
  }

  /** Returns the next dates that the calendars exclude, by calendar id. */
  async nextExcludedDates(
    manager: EntityManager,
    calendarIds: ReadonlySet<string>,
  ): Promise<Map<string, string[]>> {
    if (calendarIds.size === 0) return new Map();
    const rows = await manager.query<{ calendarId: string; dates: string[] }[]>(NEXT_EXCLUDED_DATES, [
      [...calendarIds],
    ]);
    return new Map(rows.map(({ calendarId, dates }) => [calendarId, dates]));
  }

  /** Returns the first future pending instance within each span. */
  firstPendingIn(
    manager: EntityManager,
    spans: readonly ScheduleSpan[],
  ): Promise<{ scheduleId: string; dueAt: Date }[]> {
    return manager.query(FIRST_PENDING_IN, [
      spans.map(({ scheduleId }) => scheduleId),
      spans.map(({ from }) => from),
      spans.map(({ until }) => until),
    ]);
  }

  /** Locks a schedule and returns its status; null if it has become Active. */
  async lockInactive(manager: EntityManager, scheduleId: string): Promise<'Paused' | 'Removed' | null> {
    const rows = await manager.query<{ status: 'Paused' | 'Removed' }[]>(LOCK_INACTIVE, [scheduleId]);
    return rows[0]?.status ?? null;
  }

  /** Returns the next schedule by id, or null after the last. Hand-written SQL: reads only two columns. */
  async nextSchedule(after: string): Promise<Leftover | null> {
    const rows = await this.dataSource.query<Leftover[]>(NEXT_SCHEDULE, [after]);
    return rows[0] ?? null;
  }

  triggersWithoutBusinessUnit(): Promise<Leftover[]> {
    return this.dataSource.query(TRIGGERS_WITHOUT_BUSINESS_UNIT);
  }

  /** Returns the next page of triggers that are not in ERROR, by facility. Empty after the last. */
  firingTriggers(afterFacility: number): Promise<FiringTrigger[]> {
    return this.dataSource.query(FIRING_TRIGGERS, [afterFacility]);
  }

  /** Returns waiting events of types that this release does not publish. */
  eventsOfOtherTypes(knownTypes: readonly string[]): Promise<Leftover[]> {
    return this.dataSource.query(EVENTS_OF_OTHER_TYPES, [knownTypes]);
  }
}
