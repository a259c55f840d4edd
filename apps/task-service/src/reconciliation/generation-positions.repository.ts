import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inParts, inTransaction, type RefusedItem } from '@platform/database';
import { DataSource } from 'typeorm';
import type { RecurrenceText } from '../recurrence/recurrence';
import type { TriggerPlan } from '../scheduler/triggers.repository';

/** An Active schedule whose position may be wrong. */
export interface PositionedSchedule extends Omit<RecurrenceText, 'excludedDates'> {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly calendarId: string | null;
  readonly generatedUntil: Date;
  readonly now: Date;
  /** Whether its facility has no trigger although no business unit has deactivated it. */
  readonly isWithoutTrigger: boolean;
  /**
   * Whether it is generated beyond the horizon, because the trigger fires rarely, or because a clock was
   * ahead.
   */
  readonly isFarAhead: boolean;
}

/** A page of rows ordered by key. `last` is the key of the last row examined; null at the end. */
export interface Page<Row, Key> {
  readonly rows: Row[];
  readonly last: Key | null;
}

/** A trigger's next fire and the expected one. */
export interface Misplacement {
  readonly facilityId: number;
  readonly nextFireAt: Date;
  readonly expectedAt: Date;
}

const SCHEDULES_PER_PAGE = 1_000;
const TRIGGERS_PER_PAGE = 10_000;
/** Triggers whose next fire is sooner than this are not checked, because that fire corrects them. */
const TOLERANCE = '25 hours';

// Hand-written SQL: a few index probes per row.
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

// Hand-written SQL: reads a page of the table and returns the few suspicious rows.
const TRIGGERS = `
  WITH page AS MATERIALIZED (
    SELECT * FROM task.triggers WHERE facility_id > $1 ORDER BY facility_id LIMIT ${String(TRIGGERS_PER_PAGE)}
  )
  SELECT (SELECT max(facility_id) FROM page)::float8 AS last, now() AS now, facility_id::float8 AS "facilityId", schedule,
    time_zone AS "timeZone", jitter_seconds AS "jitterSeconds", next_fire_at AS "nextFireAt", state
  FROM (SELECT) AS always
  LEFT JOIN page ON state <> 'ERROR' AND next_fire_at > now() + interval '${TOLERANCE}'
  ORDER BY facility_id`;

// Hand-written SQL: updates a batch. Skips triggers that another transaction has locked or changed. Clears a
// previous fire in the future: the wrong clock dated it.
const MOVE_TRIGGERS = `
  WITH free AS MATERIALIZED (
    SELECT facility_id FROM task.triggers WHERE facility_id = ANY ($1) ORDER BY facility_id FOR UPDATE SKIP LOCKED
  )
  UPDATE task.triggers AS trigger SET next_fire_at = plan.expected_at,
    previous_fire_at = CASE WHEN previous_fire_at <= now() THEN previous_fire_at END
  FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS plan (facility_id, next_fire_at, expected_at)
    JOIN free USING (facility_id)
  WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = plan.facility_id AND trigger.next_fire_at = plan.next_fire_at`;

// ONLY: released instances are in another table, and their instants are free.
const DUE_INSTANTS = `
  SELECT due_at AS "dueAt" FROM ONLY task.instances WHERE schedule_id = $1 AND due_at > $2 AND due_at <= $3`;

// Hand-written SQL: skips a schedule that another transaction has locked or changed.
const RESET_GENERATED = `
  UPDATE task.schedules SET generated_until = now() WHERE schedule_id = (
    SELECT schedule_id FROM task.schedules WHERE schedule_id = $1 AND generated_until = $2 FOR NO KEY UPDATE SKIP LOCKED)`;

const DATES = `
  SELECT excluded_dates AS dates FROM task.calendars WHERE calendar_id = $1`;

/** Reads and repairs the positions of triggers and of generation. */
@Injectable()
export class GenerationPositionsRepository {
  constructor(@InjectDataSource() readonly dataSource: DataSource) {}

  /** Reads the next 1,000 schedules. Returns those that are suspicious. */
  async schedules(
    after: string,
    { graceMinutes, horizonDays }: { graceMinutes: number; horizonDays: number },
  ): Promise<Page<PositionedSchedule, string>> {
    const values = [after, `${String(graceMinutes)} minutes`, `${String(horizonDays + 1)} days`];
    return pageOf(await this.dataSource.query(SCHEDULES, values), 'scheduleId');
  }

  /** Reads the next 10,000 triggers. Returns those whose next fire is more than a day ahead. */
  async triggers(after: number): Promise<Page<TriggerPlan & { now: Date }, number>> {
    return pageOf(await this.dataSource.query(TRIGGERS, [after]), 'facilityId');
  }

  /** Sets the next fire of triggers. Returns those that PostgreSQL rejected. */
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

  /** Returns the due instants of the schedule's instances in (`after`, `until`], without released ones. */
  async dueInstants(scheduleId: string, after: Date, until: Date): Promise<Date[]> {
    const rows = await this.dataSource.query<{ dueAt: Date }[]>(DUE_INSTANTS, [scheduleId, after, until]);
    return rows.map(({ dueAt }) => dueAt);
  }

  /** Makes generation restart from now. Existing instances are not created again. */
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

/** The query returns at least one row, which carries `last` even if no row is suspicious. */
function pageOf<Row, Key>(rows: readonly (Row & { last: Key | null })[], key: keyof Row): Page<Row, Key> {
  return { rows: rows.filter((row) => row[key] !== null), last: rows[0]?.last ?? null };
}
