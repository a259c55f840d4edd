import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { Schedule } from './schedule.entity';

/** An Active schedule with the dates of its calendar. Schedules with the same calendar share one array. */
export interface GeneratingSchedule extends Pick<
  Schedule,
  'scheduleId' | 'schedule' | 'timeZone' | 'startDate' | 'endDate' | 'calendarId' | 'generatedUntil'
> {
  readonly excludedDates: readonly string[] | null;
  /** Current revision of the calendar; null without a calendar. */
  readonly calendarRevision: number | null;
  /** Revision of the calendar by which the future instances were generated. */
  readonly generatedRevision: number | null;
  /** Whether the calendar has changed since the instances were generated. */
  readonly isCalendarStale: boolean;
}

// Locks in a fixed order, so that two runs of generation do not deadlock. The dates of calendars are read
// separately, once per calendar: for 1,000 schedules with ten years of dates each a join would return 40 MB.
const LOCK_FOR_GENERATION = `
  SELECT schedule_id AS "scheduleId", schedule, time_zone AS "timeZone", start_date AS "startDate", end_date AS "endDate",
    calendar_id AS "calendarId", generated_until AS "generatedUntil",
    schedule.calendar_revision::float8 AS "generatedRevision",
    template_id IS NULL AND octet_length(template) > 256 AS "isTemplateUnstored"
  FROM task.schedules AS schedule LEFT JOIN task.calendars AS calendar USING (calendar_id)
  WHERE status = 'Active' AND ended_at IS NULL AND ($1::uuid IS NULL OR schedule_id = $1) AND facility_id = $2
    AND (generated_until < $3 OR schedule.calendar_revision IS DISTINCT FROM calendar.revision)
  ORDER BY schedule_id
  FOR NO KEY UPDATE OF schedule`;

interface LockedRow extends Omit<
  GeneratingSchedule,
  'excludedDates' | 'calendarRevision' | 'isCalendarStale'
> {
  readonly isTemplateUnstored: boolean | null;
}

const CALENDARS = `
  SELECT calendar_id AS "calendarId", revision::float8 AS revision, excluded_dates AS "excludedDates"
  FROM task.calendars WHERE calendar_id = ANY ($1)`;

// For schedules written by release 1.0.0: makes the database trigger on `template` store the template once.
const STORE_TEMPLATES = `UPDATE task.schedules SET template = template WHERE schedule_id = ANY ($1)`;

// Hand-written SQL: a batch in one statement. Clears the error: these schedules have just been evaluated.
const MARK_GENERATED = `
  UPDATE task.schedules AS schedule
  SET generated_until = done.until, calendar_revision = done.calendar_revision, error = NULL,
    ended_at = CASE WHEN done.has_ended THEN now() END
  FROM unnest($1::uuid[], $2::timestamptz[], $3::bigint[], $4::boolean[]) AS done (schedule_id, until, calendar_revision, has_ended)
  WHERE schedule.schedule_id = ANY ($1) AND schedule.schedule_id = done.schedule_id`;

const MARK_FAILED = `
  UPDATE task.schedules AS schedule SET error = failed.error
  FROM unnest($1::uuid[], $2::text[]) AS failed (schedule_id, error)
  WHERE schedule.schedule_id = failed.schedule_id AND schedule.error IS DISTINCT FROM failed.error`;

// Hand-written SQL: FOR NO KEY UPDATE SKIP LOCKED. `end_date` begins with a local date, which may be up to a
// day later than the UTC date at the end. If the facility has a waiting trigger, its next fire generates the
// last occurrences and marks the end itself.
const LOCK_ENDING = `
  SELECT schedule_id AS "scheduleId", facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone", start_date AS "startDate", end_date AS "endDate",
    generated_until AS "generatedUntil", now() AS now,
    EXISTS (SELECT 1 FROM task.triggers AS trigger
      WHERE trigger.facility_id = schedule.facility_id AND trigger.state = 'WAITING') AS "isGenerated"
  FROM task.schedules AS schedule
  WHERE end_date IS NOT NULL AND ended_at IS NULL AND status = 'Active' AND error IS NULL
    AND (end_date COLLATE "C", schedule_id) > ($1 COLLATE "C", $2::uuid)
    AND end_date COLLATE "C" < to_char(now() AT TIME ZONE 'UTC' + interval '2 days', 'YYYY-MM-DD') COLLATE "C"
  ORDER BY end_date COLLATE "C", schedule_id
  LIMIT $3
  FOR NO KEY UPDATE OF schedule SKIP LOCKED`;

/** An Active schedule whose end may have passed. */
export interface EndingSchedule extends Pick<
  Schedule,
  'scheduleId' | 'facilityId' | 'schedule' | 'timeZone' | 'startDate' | 'endDate' | 'generatedUntil'
> {
  /** Whether its facility has a waiting trigger. */
  readonly isGenerated: boolean;
  readonly now: Date;
}

const UNGENERATED = `
  SELECT schedule, time_zone AS "timeZone", start_date AS "startDate", end_date AS "endDate", generated_until AS "generatedUntil"
  FROM task.schedules
  WHERE facility_id = $1 AND status = 'Active' AND ended_at IS NULL AND error IS NULL AND generated_until < $2
    AND schedule_id IS DISTINCT FROM $3::uuid`;

const COUNT_FAILED = `
  SELECT count(*)::int AS count FROM (SELECT 1 FROM task.schedules WHERE error IS NOT NULL LIMIT 10000) AS counted`;

export type UngeneratedSchedule = Pick<
  Schedule,
  'schedule' | 'timeZone' | 'startDate' | 'endDate' | 'generatedUntil'
>;

// Hand-written SQL: skips a schedule that another transaction has locked.
const CLEAR_REVISION = `
  UPDATE task.schedules SET calendar_revision = NULL WHERE schedule_id = (
    SELECT schedule_id FROM task.schedules WHERE schedule_id = $1 AND status = 'Active' FOR NO KEY UPDATE SKIP LOCKED)`;

// Hand-written SQL: skips a schedule that another transaction has locked or changed.
const RESET_GENERATED = `
  UPDATE task.schedules SET generated_until = now() WHERE schedule_id = (
    SELECT schedule_id FROM task.schedules WHERE schedule_id = $1 AND generated_until = $2 FOR NO KEY UPDATE SKIP LOCKED)`;

const NIL_UUID = '00000000-0000-0000-0000-000000000000';
const ERROR_MAX_LENGTH = 500;

/** Statements on `task.schedules` for the generation of instances. */
@Injectable()
export class GeneratingSchedulesRepository {
  constructor(@InjectRepository(Schedule) private readonly schedules: Repository<Schedule>) {}

  /**
   * Locks the Active schedules of a facility, or one of them, that are not generated up to `until` or were
   * generated by an older revision of their calendar. If `until` is null, locks all. Skips ended ones.
   */
  async lockForGeneration(
    manager: EntityManager,
    { facilityId, scheduleId }: { facilityId: number; scheduleId?: string | undefined },
    until: Date | null,
  ): Promise<GeneratingSchedule[]> {
    const values = [scheduleId ?? null, facilityId, until ?? 'infinity'];
    const rows = await manager.query<LockedRow[]>(LOCK_FOR_GENERATION, values);
    const unstored = rows.filter(({ isTemplateUnstored }) => isTemplateUnstored === true);
    if (unstored.length > 0) await manager.query(STORE_TEMPLATES, [unstored.map((row) => row.scheduleId)]);
    const calendars = await calendarsOf(manager, rows);
    return rows.map(({ isTemplateUnstored: _, ...row }) => {
      const calendar = row.calendarId === null ? undefined : calendars.get(row.calendarId);
      const calendarRevision = calendar?.revision ?? null;
      const isCalendarStale = calendarRevision !== row.generatedRevision;
      return { ...row, excludedDates: calendar?.excludedDates ?? null, calendarRevision, isCalendarStale };
    });
  }

  /** Returns the calendar's current dates; null without a calendar. */
  async excludedDates(manager: EntityManager, calendarId: string | null): Promise<readonly string[] | null> {
    if (calendarId === null) return null;
    return (await calendarsOf(manager, [{ calendarId }])).get(calendarId)?.excludedDates ?? null;
  }

  /**
   * Stores up to which instant and by which revision of their calendar the locked schedules have been
   * generated, and which of them have ended.
   */
  async markGenerated(
    manager: EntityManager,
    done: readonly (Pick<Schedule, 'scheduleId' | 'generatedUntil' | 'calendarRevision'> & {
      hasEnded: boolean;
    })[],
  ): Promise<void> {
    await manager.query(MARK_GENERATED, [
      done.map(({ scheduleId }) => scheduleId),
      done.map(({ generatedUntil }) => generatedUntil),
      done.map(({ calendarRevision }) => calendarRevision),
      done.map(({ hasEnded }) => hasEnded),
    ]);
  }

  /** Stores why locked schedules cannot be evaluated. */
  async markFailed(
    manager: EntityManager,
    failed: readonly { scheduleId: string; error: string }[],
  ): Promise<void> {
    await manager.query(MARK_FAILED, [
      failed.map(({ scheduleId }) => scheduleId),
      failed.map(({ error }) => error.slice(0, ERROR_MAX_LENGTH)),
    ]);
  }

  /** Locks the next Active schedules, ordered by end, that may have ended. Skips those that are locked. */
  lockEnding(
    manager: EntityManager,
    after: Pick<Schedule, 'endDate' | 'scheduleId'> | null,
    limit: number,
  ): Promise<EndingSchedule[]> {
    const [endDate, scheduleId] = [after?.endDate ?? '', after?.scheduleId ?? NIL_UUID];
    return manager.query(LOCK_ENDING, [endDate, scheduleId, limit]);
  }

  /** Marks locked schedules as ended. */
  async markEnded(manager: EntityManager, scheduleIds: readonly string[], endedAt: Date): Promise<void> {
    if (scheduleIds.length > 0)
      await manager.update(Schedule, { scheduleId: In([...scheduleIds]) }, { endedAt });
  }

  /** Returns the facility's Active schedules, except one, that are not generated up to `until`. */
  findUngenerated(
    manager: EntityManager,
    facilityId: number,
    until: Date,
    exceptScheduleId: string | null,
  ): Promise<UngeneratedSchedule[]> {
    return manager.query(UNGENERATED, [facilityId, until, exceptScheduleId]);
  }

  /** Makes generation apply the calendar of an Active schedule again, as if it had changed. */
  async clearCalendarRevision(manager: EntityManager, scheduleId: string): Promise<void> {
    await manager.query(CLEAR_REVISION, [scheduleId]);
  }

  /** Makes generation restart from now. Existing instances are not created again. */
  async resetGenerated({
    scheduleId,
    generatedUntil,
  }: Pick<Schedule, 'scheduleId' | 'generatedUntil'>): Promise<void> {
    await this.schedules.query(RESET_GENERATED, [scheduleId, generatedUntil]);
  }

  /** Counts the schedules that cannot be evaluated, up to 10,000. */
  async countFailed(): Promise<number> {
    const rows = await this.schedules.query<{ count: number }[]>(COUNT_FAILED);
    return rows[0]?.count ?? 0;
  }
}

/** Returns the calendars of the schedules by id. Reads each once. */
export async function calendarsOf(
  manager: EntityManager,
  schedules: readonly Pick<Schedule, 'calendarId'>[],
): Promise<Map<string, { revision: number; excludedDates: string[] }>> {
  const ids = new Set(schedules.flatMap(({ calendarId }) => calendarId ?? []));
  if (ids.size === 0) return new Map();
  const rows = await manager.query<{ calendarId: string; revision: number; excludedDates: string[] }[]>(
    CALENDARS,
    [[...ids]],
  );
  return new Map(rows.map((row) => [row.calendarId, row]));
}
