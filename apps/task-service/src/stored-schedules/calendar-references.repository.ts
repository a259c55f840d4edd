import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Schedule } from './schedule.entity';

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

/** The references of schedules to calendars. */
@Injectable()
export class CalendarReferencesRepository {
  /**
   * Clears a calendar from at most `limit` removed schedules. Changes nothing if a schedule that is not
   * removed names it.
   */
  async clear(
    manager: EntityManager,
    calendarId: string,
    limit: number,
  ): Promise<{ readonly isInUse: boolean; readonly hasMore: boolean }> {
    const rows = await manager.query<{ read: number; isInUse: boolean }[]>(CLEAR_REFERENCES, [
      calendarId,
      limit,
    ]);
    return { isInUse: rows[0]?.isInUse ?? false, hasMore: rows[0]?.read === limit };
  }

  /** Returns one of the schedules that name a calendar, or null. */
  findNaming(manager: EntityManager, calendarId: string): Promise<Schedule | null> {
    return manager.findOneBy(Schedule, { calendarId });
  }
}
