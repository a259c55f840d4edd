import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inParts, inTransaction, type RefusedItem } from '@platform/database';
import { DataSource } from 'typeorm';
import type { RecurrenceText } from '../schedules/recurrence';
import type { TriggerPlan } from '../scheduler/triggers.repository';

/** A schedule that is Active, and what may be wrong with how far it is generated. */
export interface PositionedSchedule extends Omit<RecurrenceText, 'excludedDates'> {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly calendarId: string | null;
  readonly generatedUntil: Date;
  readonly now: Date;
  /** No trigger generates its instances, and no business unit let go of its facility. */
  readonly isWithoutTrigger: boolean;
  /** It is generated beyond the horizon: a rare trigger needs that, or a clock was ahead. */
  readonly isFarAhead: boolean;
}

/** A page of rows in the order of their keys; `last` is null at the end. */
export interface Page<Row, Key> {
  readonly rows: Row[];
  readonly last: Key | null;
}

/** A trigger's next fire and where it should be. */
export interface Misplacement {
  readonly facilityId: number;
  readonly nextFireAt: Date;
  readonly expectedAt: Date;
}

const SCHEDULES_PER_PAGE = 1_000;
const TRIGGERS_PER_PAGE = 10_000;
/** A trigger that is due sooner corrects itself soon enough. */
const TOLERANCE = '25 hours';

// Hand-written SQL: each row costs a few probes of an index.
const SCHEDULES = `
  WITH page AS MATERIALIZED (
    SELECT * FROM task.schedules WHERE schedule_id > $1 ORDER BY schedule_id LIMIT ${String(SCHEDULES_PER_PAGE)}
  ), examined AS (
    SELECT page.*, generated_until > now() + $3::interval AS is_far_ahead,
      created_at < now() - $2::interval
        AND (SELECT true FROM task.triggers AS trigger WHERE trigger.facility_id = page.facility_id LIMIT 1) IS NULL
        AND (SELECT true FROM task.facility_activity AS activity
          WHERE activity.facility_id = page.facility_id AND activity.inactive_since IS NOT NULL LIMIT 1) IS NULL
        AS is_without_trigger
    FROM page WHERE status = 'Active'
  )
  SELECT (SELECT max(schedule_id::text) FROM page) AS last, now() AS now, schedule_id AS "scheduleId",
    facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone", start_date AS "startDate", end_date AS "endDate",
    calendar_id AS "calendarId", generated_until AS "generatedUntil", is_without_trigger AS "isWithoutTrigger",
    is_far_ahead AS "isFarAhead"
  FROM (SELECT) AS always LEFT JOIN examined ON is_far_ahead OR is_without_trigger
  ORDER BY schedule_id`;

// Hand-written SQL: a page of the table, of which few rows are shown.
const TRIGGERS = `
  WITH page AS MATERIALIZED (
    SELECT * FROM task.triggers WHERE facility_id > $1 ORDER BY facility_id LIMIT ${String(TRIGGERS_PER_PAGE)}
  )
  SELECT (SELECT max(facility_id) FROM page)::float8 AS last, now() AS now, facility_id::float8 AS "facilityId", schedule,
    time_zone AS "timeZone", jitter_seconds AS "jitterSeconds", next_fire_at AS "nextFireAt", state
  FROM (SELECT) AS always
  LEFT JOIN page ON state <> 'ERROR' AND next_fire_at > now() + interval '${TOLERANCE}'
  ORDER BY facility_id`;

// Hand-written SQL: in a batch, and only where nobody else was faster or is at it. A fire dated ahead of now
// is from the clock that was wrong.
const MOVE_TRIGGERS = `
  WITH free AS MATERIALIZED (
    SELECT facility_id FROM task.triggers WHERE facility_id = ANY ($1) ORDER BY facility_id FOR UPDATE SKIP LOCKED
  )
  UPDATE task.triggers AS trigger SET next_fire_at = plan.expected_at,
    previous_fire_at = CASE WHEN previous_fire_at <= now() THEN previous_fire_at END
  FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS plan (facility_id, next_fire_at, expected_at)
    JOIN free USING (facility_id)
  WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = plan.facility_id AND trigger.next_fire_at = plan.next_fire_at`;

// What was withdrawn is in another table: its instant is free.
const DUE_INSTANTS = `
  SELECT due_at AS "dueAt" FROM ONLY task.instances WHERE schedule_id = $1 AND due_at > $2 AND due_at <= $3`;

// Hand-written SQL: only where nobody else was faster or is at it.
const RESET_GENERATED = `
  UPDATE task.schedules SET generated_until = now() WHERE schedule_id = (
    SELECT schedule_id FROM task.schedules WHERE schedule_id = $1 AND generated_until = $2 FOR NO KEY UPDATE SKIP LOCKED)`;

const DATES = `
  SELECT excluded_dates AS dates FROM task.calendars WHERE calendar_id = $1`;

/** What reconciliation reads and writes of the positions of triggers and of generation. */
@Injectable()
export class GenerationPositionsRepository {
  constructor(@InjectDataSource() readonly dataSource: DataSource) {}

  /** Of the next thousand schedules, those with something suspicious. */
  async schedules(
    after: string,
    { graceMinutes, horizonDays }: { graceMinutes: number; horizonDays: number },
  ): Promise<Page<PositionedSchedule, string>> {
    const values = [after, `${String(graceMinutes)} minutes`, `${String(horizonDays + 1)} days`];
    return pageOf(await this.dataSource.query(SCHEDULES, values), 'scheduleId');
  }

  /** Of the next ten thousand triggers, those whose next fire is more than a day ahead. */
  async triggers(after: number): Promise<Page<TriggerPlan & { now: Date }, number>> {
    return pageOf(await this.dataSource.query(TRIGGERS, [after]), 'facilityId');
  }

  /** Gives those that PostgreSQL refuses. */
  moveTriggers(misplaced: readonly Misplacement[]): Promise<RefusedItem<Misplacement>[]> {
    return inTransaction(this.dataSource, 'READ COMMITTED', (manager) =>
      inParts(manager, misplaced, (savepoint, some) =>
        savepoint.query(MOVE_TRIGGERS, [
          some.map(({ facilityId }) => facilityId),
          some.map(({ nextFireAt }) => nextFireAt),
          some.map(({ expectedAt }) => expectedAt),
        ]),
      ),
    );
  }

  /** Instants of the schedule's instances in (`after`, `until`], but for withdrawn ones. */
  async dueInstants(scheduleId: string, after: Date, until: Date): Promise<Date[]> {
    const rows = await this.dataSource.query<{ dueAt: Date }[]>(DUE_INSTANTS, [scheduleId, after, until]);
    return rows.map(({ dueAt }) => dueAt);
  }

  /** Has the schedule generated again from now on; what exists is not made twice. */
  async resetGenerated({
    scheduleId,
    generatedUntil,
  }: Pick<PositionedSchedule, 'scheduleId' | 'generatedUntil'>): Promise<void> {
    await this.dataSource.query(RESET_GENERATED, [scheduleId, generatedUntil]);
  }

  async excludedDates(calendarId: string | null): Promise<readonly string[] | null> {
    if (calendarId === null) return null;
    const rows = await this.dataSource.query<{ dates: string[] }[]>(DATES, [calendarId]);
    return rows[0]?.dates ?? null;
  }
}

/** Without any suspicious row there is one that tells how far the page went. */
function pageOf<Row, Key>(rows: readonly (Row & { last: Key | null })[], key: keyof Row): Page<Row, Key> {
  return { rows: rows.filter((row) => row[key] !== null), last: rows[0]?.last ?? null };
}
