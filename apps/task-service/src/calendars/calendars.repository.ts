import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { mayWrite, type Preconditions } from '@platform/service-defaults';
import { MoreThan, Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { TaskError } from '../problems/task-error';
import { Schedule } from '../stored-schedules/schedule.entity';
import { Calendar, calendarRevision } from './calendar.entity';

// Hand-written SQL: returns no row if another transaction has created the calendar.
const INSERT = `
  INSERT INTO task.calendars AS calendar (calendar_id, name, excluded_dates) VALUES ($1, $2, $3)
  ON CONFLICT (calendar_id) DO NOTHING
  RETURNING calendar_id AS "calendarId", name, excluded_dates AS "excludedDates", revision::float8 AS revision,
    changed_at AS "changedAt"`;

// Hand-written SQL: compares with the stored row. The revision changes only with the dates. The ETag also
// contains `changed_at`, because a failover that loses commits turns the revision back, but not the time.
// `changed_at` is always the present, even if the stored one lies in the future. The second of two changes in
// the same millisecond gets the next millisecond.
const REPLACE = `
  WITH replaced AS (
    UPDATE task.calendars SET name = $2, excluded_dates = $3,
      changed_at = present.at + CASE WHEN present.at = changed_at THEN interval '1 millisecond' ELSE interval '0' END,
      revision = revision + CASE WHEN excluded_dates = $3 THEN 0 ELSE 1 END
    FROM (SELECT clock_timestamp()::timestamptz(3) AS at OFFSET 0) AS present
    WHERE calendar_id = $1
    RETURNING calendars.*
  )
  SELECT calendar_id AS "calendarId", name, excluded_dates AS "excludedDates", revision::float8 AS revision,
    changed_at AS "changedAt"
  FROM replaced`;

// Hand-written SQL: reads at most $2 schedules by the index of a calendar's schedules. Changes nothing if one
// of the calendar's schedules is not removed, which a separate index finds.
const CLEAR_REFERENCES = `
  WITH in_use AS MATERIALIZED (
    SELECT 1 FROM task.schedules WHERE calendar_id = $1 AND status <> 'Removed' LIMIT 1
  ), page AS MATERIALIZED (
    SELECT schedule_id FROM task.schedules WHERE calendar_id = $1 AND NOT EXISTS (SELECT 1 FROM in_use)
    ORDER BY facility_id LIMIT $2
  ), forgetting AS (
    UPDATE task.schedules SET calendar_id = NULL
    WHERE schedule_id = ANY (ARRAY(SELECT schedule_id FROM page)) AND calendar_id = $1 AND status = 'Removed'
  )
  SELECT (SELECT count(*)::int FROM page) AS read, EXISTS (SELECT 1 FROM in_use) AS "isInUse"`;

/**
 * Attempts to create or lock a calendar. An attempt fails only if another transaction creates the calendar
 * between the read and the insert. For another failure it must also be deleted again.
 */
const MAX_ATTEMPTS = 5;

/** A calendar after a write. */
export interface StoredCalendar {
  readonly calendar: Calendar;
  /** Whether the write changed dates that schedules may follow. */
  readonly hasOtherDates: boolean;
}

/** Reads and writes of calendars. Generation reads their dates in its own statements. */
@Injectable()
export class CalendarsRepository {
  constructor(@InjectRepository(Calendar) private readonly calendars: Repository<Calendar>) {}

  find(calendarId: string): Promise<Calendar | null> {
    return this.calendars.findOneBy({ calendarId });
  }

  /**
   * Returns the excluded dates of a calendar.
   * @throws {TaskError} calendar-unknown
   */
  async excludedDates(calendarId: string): Promise<readonly string[]> {
    const calendar = await this.find(calendarId);
    if (!calendar) throw new TaskError('calendar-unknown');
    return calendar.excludedDates;
  }

  /** Returns calendars ordered by identifier, after the given one. */
  list({ after: [calendarId], limit }: { after: readonly unknown[]; limit: number }): Promise<Calendar[]> {
    const where = calendarId === undefined ? {} : { calendarId: MoreThan(calendarId as string) };
    return this.calendars.find({ where, order: { calendarId: 'ASC' }, take: limit });
  }

  /**
   * Creates or replaces a calendar if the conditions allow it. A calendar that already has this name and
   * these dates is not written.
   * @param attempt `unconfirmed`: what an earlier attempt stored whose commit was not confirmed
   * @throws {TaskError} calendar-changed, outcome-unknown
   */
  async put(
    manager: EntityManager,
    calendar: Pick<Calendar, 'calendarId' | 'name' | 'excludedDates'>,
    { conditions, unconfirmed }: { conditions: Preconditions; unconfirmed: Calendar | null },
  ): Promise<StoredCalendar> {
    const { calendarId, name, excludedDates } = calendar;
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const found = await this.lock(manager, calendarId, 'for_no_key_update');
      const current = found === null ? null : calendarRevision(found);
      if (found !== null && unconfirmed !== null && current === calendarRevision(unconfirmed))
        return { calendar: found, hasOtherDates: false };
      if (!mayWrite(conditions, current)) throw changedError(unconfirmed !== null);
      if (found !== null && found.name === name && isDeepStrictEqual(found.excludedDates, excludedDates))
        return { calendar: found, hasOtherDates: false };
      const statement = found === null ? INSERT : REPLACE;
      const rows = await manager.query<Calendar[]>(statement, [calendarId, name, excludedDates]);
      // No schedule can name a new calendar before its commit, so only a replaced one has followers.
      if (rows[0])
        return { calendar: rows[0], hasOtherDates: found !== null && found.revision !== rows[0].revision };
    }
    throw new Error('the calendar was neither created nor found');
  }

  /**
   * Clears the calendar, which is not locked, from at most `limit` removed schedules. Returns `more` if
   * further ones may name it.
   * @throws {TaskError} calendar-changed; calendar-in-use if a schedule that is not removed names it
   */
  async clearReferences(
    manager: EntityManager,
    { calendarId, conditions, limit }: { calendarId: string; conditions: Preconditions; limit: number },
  ): Promise<'absent' | 'more' | 'done'> {
    const found = await manager.findOneBy(Calendar, { calendarId });
    if (!mayWrite(conditions, found === null ? null : calendarRevision(found)))
      throw new TaskError('calendar-changed');
    if (!found) return 'absent';
    const rows = await manager.query<{ read: number; isInUse: boolean }[]>(CLEAR_REFERENCES, [
      calendarId,
      limit,
    ]);
    if (rows[0]?.isInUse) throw new TaskError('calendar-in-use');
    return rows[0]?.read === limit ? 'more' : 'done';
  }

  /**
   * Deletes a calendar that no schedule names. Returns `named` if a removed schedule still names it.
   * @param attempt `mayBeDeleted`: an earlier attempt, whose commit was not confirmed, may have deleted it
   * @throws {TaskError} calendar-changed, outcome-unknown; calendar-in-use if a schedule that is not removed
   * names it
   */
  async delete(
    manager: EntityManager,
    calendarId: string,
    { conditions, mayBeDeleted }: { conditions: Preconditions; mayBeDeleted: boolean },
  ): Promise<'absent' | 'named' | 'deleted'> {
    // The lock keeps other transactions from creating schedules that name it.
    const found = await this.lock(manager, calendarId, 'pessimistic_write');
    if (found === null && mayBeDeleted) return 'deleted';
    if (!mayWrite(conditions, found === null ? null : calendarRevision(found)))
      throw changedError(mayBeDeleted);
    if (!found) return 'absent';
    const naming = await manager.findOneBy(Schedule, { calendarId });
    if (naming !== null && naming.status !== 'Removed') throw new TaskError('calendar-in-use');
    if (naming !== null) return 'named';
    await manager.delete(Calendar, { calendarId });
    return 'deleted';
  }

  /**
   * Locks a calendar.
   * @param mode `for_no_key_update` for a change: other transactions may still create schedules that name it
   */
  private lock(
    manager: EntityManager,
    calendarId: string,
    mode: 'for_no_key_update' | 'pessimistic_write',
  ): Promise<Calendar | null> {
    return manager.findOne(Calendar, { where: { calendarId }, lock: { mode } });
  }
}

/**
 * Returns the error of an `If-Match` or `If-None-Match` that does not hold. If an earlier attempt may have
 * been committed, the outcome is unknown.
 */
function changedError(isUnconfirmed: boolean): TaskError {
  return isUnconfirmed
    ? new TaskError('outcome-unknown', { retryAfterSeconds: 1 })
    : new TaskError('calendar-changed');
}
