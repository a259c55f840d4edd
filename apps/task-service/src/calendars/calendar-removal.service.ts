import { Injectable } from '@nestjs/common';
import type { Preconditions } from '@platform/service-defaults';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-problem.filter';
import { CalendarsRepository } from './calendars.repository';

/**
 * Schedules of one transaction: it holds few rows and ends soon, however many removed schedules name the
 * calendar.
 */
const SCHEDULES_PER_STEP = 1_000;
/** A request ends within seconds; what it has done stays, and the next one goes on. */
const STEPS_PER_REQUEST = 50;

/**
 * Deletes calendars. Removed schedules forget the calendar first, step by step and without a lock on it, so
 * that schedules which name it are created meanwhile. The calendar is locked only once nothing is left to
 * change.
 */
@Injectable()
export class CalendarRemovalService {
  constructor(
    private readonly calendars: CalendarsRepository,
    private readonly outbound: OutboundProxy,
  ) {}

  /** False without such a calendar.
   *  @throws {TaskError} calendar-changed, outcome-unknown; calendar-in-use by any schedule that is not removed; calendar-still-named by more removed schedules
   *    than one request makes forget it */
  async delete(calendarId: string, conditions: Preconditions): Promise<boolean> {
    for (let step = 1; step <= STEPS_PER_REQUEST; step += 1) {
      const left = await this.outbound.transaction((manager) =>
        this.calendars.forget(manager, { calendarId, conditions, limit: SCHEDULES_PER_STEP }),
      );
      if (left === 'absent') return false;
      if (left === 'more') continue;
      const deleted = await this.outbound.transaction<'absent' | 'named' | 'deleted'>(
        (manager, unconfirmed) =>
          this.calendars.delete(manager, calendarId, { conditions, mayBeDeleted: unconfirmed === 'deleted' }),
      );
      if (deleted !== 'named') return deleted === 'deleted';
    }
    throw new TaskError('calendar-still-named', { retryAfterSeconds: 1 });
  }
}
