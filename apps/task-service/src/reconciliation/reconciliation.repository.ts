import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { GeneratingSchedule } from '../schedules/schedules.repository';

/** A schedule and what may be wrong with it; null: nothing. */
export interface ExaminedSchedule extends GeneratingSchedule {
  readonly facilityId: number;
  readonly suspicion: 'nothing-generated' | 'inactive' | null;
  readonly now: Date;
}

/** What is of a trigger or an event that only an operator can judge. */
export interface Leftover {
  readonly facilityId: number;
  readonly id: string;
}

/** Of the advisory lock under which one process at a time reconciles. Any fixed number that nothing else uses. */
const LOCK_KEY = 0x7265_636f;
const PAGE_SIZE = 1_000;
const MAX_LEFTOVERS = 10_000;

// Hand-written SQL: each row costs one or two probes of an index, so that all schedules can be examined every
// hour; a sub-query with a limit is looked up for each, EXISTS may read the other table as a whole. An Active
// schedule is to have instances; where its facility has a trigger, they are to reach past now.
const EXAMINE = `
  SELECT schedule_id AS "scheduleId", facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone", start_date AS "startDate",
    end_date AS "endDate", calendar_id AS "calendarId", generated_until AS "generatedUntil", excluded_dates AS "excludedDates",
    calendar.revision::float8 AS "calendarRevision", false AS "isCalendarStale", now() AS now,
    CASE WHEN status <> 'Active' THEN
      (SELECT 'inactive' FROM ONLY task.instances AS due
        WHERE due.schedule_id = schedule.schedule_id AND due.due_at > now() AND due.status = 'Pending'
          AND NOT EXISTS (SELECT 1 FROM task.releases AS release WHERE release.schedule_id = schedule.schedule_id) LIMIT 1)
    WHEN ended_at IS NULL AND created_at < now() - $2::interval AND generated_until < now() + $3::interval AND (
      (SELECT true FROM task.instances AS due WHERE due.schedule_id = schedule.schedule_id LIMIT 1) IS NULL
      OR generated_until < now() - $2::interval AND
        (SELECT true FROM task.triggers WHERE triggers.facility_id = schedule.facility_id AND state = 'WAITING' LIMIT 1))
      THEN 'nothing-generated' END AS suspicion
  FROM task.schedules AS schedule LEFT JOIN task.calendars AS calendar USING (calendar_id)
  WHERE schedule_id > $1
  ORDER BY schedule_id
  LIMIT ${String(PAGE_SIZE)}`;

const LOCK_INACTIVE = `
  SELECT status FROM task.schedules WHERE schedule_id = $1 AND status <> 'Active' FOR NO KEY UPDATE`;

const TRIGGERS_WITHOUT_BUSINESS_UNIT = `
  SELECT facility_id::float8 AS "facilityId", trigger_name AS id FROM task.triggers AS trigger
  WHERE NOT EXISTS (SELECT 1 FROM task.business_unit_facilities AS pair
    WHERE pair.facility_id = trigger.facility_id AND pair.is_active)
  ORDER BY facility_id LIMIT ${String(MAX_LEFTOVERS)}`;

const EVENTS_OF_OTHER_TYPES = `
  SELECT facility_id::float8 AS "facilityId", message_id AS id FROM task.outbox
  WHERE parked_at IS NULL AND message_type <> ALL ($1::text[])
  ORDER BY partition, sequence LIMIT ${String(MAX_LEFTOVERS)}`;

/** What reconciliation reads across the service's tables. */
@Injectable()
export class ReconciliationRepository {
  constructor(@InjectDataSource() readonly dataSource: DataSource) {}

  /** Keeps other processes from reconciling until the transaction ends; false when one is at it. @param waits for that one */
  async lock(manager: EntityManager, waits: boolean): Promise<boolean> {
    const lock = waits ? 'pg_advisory_xact_lock($1) IS NOT NULL' : 'pg_try_advisory_xact_lock($1)';
    const rows = await manager.query<{ isLocked: boolean }[]>(`SELECT ${lock} AS "isLocked"`, [LOCK_KEY]);
    return rows[0]?.isLocked ?? false;
  }

  /** The next thousand schedules by id. @param graceMinutes what was made later may still be on its way */
  examine(
    manager: EntityManager,
    after: string,
    { graceMinutes, horizonDays }: { graceMinutes: number; horizonDays: number },
  ): Promise<ExaminedSchedule[]> {
    return manager.query(EXAMINE, [after, `${String(graceMinutes)} minutes`, `${String(horizonDays)} days`]);
  }

  /** Locks a schedule and gives its status; null when it is Active by now. */
  async lockInactive(manager: EntityManager, scheduleId: string): Promise<'Paused' | 'Removed' | null> {
    const rows = await manager.query<{ status: 'Paused' | 'Removed' }[]>(LOCK_INACTIVE, [scheduleId]);
    return rows[0]?.status ?? null;
  }

  triggersWithoutBusinessUnit(): Promise<Leftover[]> {
    return this.dataSource.query(TRIGGERS_WITHOUT_BUSINESS_UNIT);
  }

  /** Waiting events of types that this release does not publish. */
  eventsOfOtherTypes(knownTypes: readonly string[]): Promise<Leftover[]> {
    return this.dataSource.query(EVENTS_OF_OTHER_TYPES, [knownTypes]);
  }
}
