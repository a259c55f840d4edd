import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { RecurrenceText } from '../recurrence/recurrence';

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

/** A page of schedules by id. */
export interface SchedulePage {
  readonly rows: readonly PositionedSchedule[];
  /** Id of the last schedule examined; null at the end. */
  readonly last: string | null;
}

type ScheduleRow = PositionedSchedule & { readonly last: string | null };

const SCHEDULES_PER_PAGE = 1_000;

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

// ONLY: released instances are in another table, and their instants are free.
const DUE_INSTANTS = `
  SELECT due_at AS "dueAt" FROM ONLY task.instances WHERE schedule_id = $1 AND due_at > $2 AND due_at <= $3`;

const DATES = `
  SELECT excluded_dates AS dates FROM task.calendars WHERE calendar_id = $1`;

/** Reads the positions of generation. */
@Injectable()
export class GenerationPositionsRepository {
  constructor(@InjectDataSource() readonly dataSource: DataSource) {}

  /** Reads the next 1,000 schedules. Returns those that are suspicious. */
  async schedules(
    after: string,
    { graceMinutes, horizonDays }: { graceMinutes: number; horizonDays: number },
  ): Promise<SchedulePage> {
    const values = [after, `${String(graceMinutes)} minutes`, `${String(horizonDays + 1)} days`];
    const rows = await this.dataSource.query<ScheduleRow[]>(SCHEDULES, values);
    // The query returns at least one row, which carries `last` even if no schedule is suspicious.
    return { rows: rows.filter((row) => row.scheduleId !== null), last: rows[0]?.last ?? null };
  }

  /** Returns the due instants of the schedule's instances in (`after`, `until`], without released ones. */
  async dueInstants(scheduleId: string, after: Date, until: Date): Promise<Date[]> {
    const rows = await this.dataSource.query<{ dueAt: Date }[]>(DUE_INSTANTS, [scheduleId, after, until]);
    return rows.map(({ dueAt }) => dueAt);
  }

  async excludedDates(calendarId: string | null): Promise<readonly string[] | null> {
    if (calendarId === null) return null;
    const rows = await this.dataSource.query<{ dates: string[] }[]>(DATES, [calendarId]);
    return rows[0]?.dates ?? null;
  }
}
