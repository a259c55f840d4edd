import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { mayWrite, type Preconditions } from '@platform/service-defaults';
import { MoreThan, Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { TaskError } from '../problems/task-error';
import { Calendar, calendarRevision } from './calendar.entity';

// Hand-written SQL: returns no row if another transaction has created the calendar.
const INSERT = `
  INSERT INTO task.calendars AS calendar (calendar_id, name, excluded_dates) VALUES ($1, $2, $3)
  ON CONFLICT (calendar_id) DO NOTHING
  RETURNING calendar_id AS "calendarId", name, excluded_dates AS "excludedDates", revision::float8 AS revision,
    changed_at AS "changedAt"`;

// Hand-written SQL: compares the new values with the stored row. The revision increases only if the dates
// change. The ETag also contains `changed_at`, because a failover that loses commits sets the revision back,
// but not the time. `changed_at` is always the current time, even if the stored one lies in the future. The
// second of two changes in the same millisecond gets the next millisecond.
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

/**
 * Maximum attempts to create or lock a calendar. An attempt fails only if another transaction creates the
 * calendar between the read and the insert. The next attempt then finds the calendar, unless it has been
 * deleted.
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

  /** Returns a calendar, or null. Reads in the transaction of `manager` if given. */
  find(calendarId: string, manager = this.calendars.manager): Promise<Calendar | null> {
    return manager.findOneBy(Calendar, { calendarId });
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
   * Locks a calendar.
   * @param mode `for_no_key_update` for a change: other transactions may still create schedules that name it
   */
  lock(
    manager: EntityManager,
    calendarId: string,
    mode: 'for_no_key_update' | 'pessimistic_write',
  ): Promise<Calendar | null> {
    return manager.findOne(Calendar, { where: { calendarId }, lock: { mode } });
  }

  /** Deletes a locked calendar that no schedule names. */
  async delete(manager: EntityManager, calendarId: string): Promise<void> {
    await manager.delete(Calendar, { calendarId });
  }
}

/**
 * Returns the error of an `If-Match` or `If-None-Match` that does not hold. If an earlier attempt may have
 * been committed, the outcome is unknown.
 */
export function changedError(isUnconfirmed: boolean): TaskError {
  return isUnconfirmed
    ? new TaskError('outcome-unknown', { retryAfterSeconds: 1 })
    : new TaskError('calendar-changed');
}
