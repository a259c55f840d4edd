import { Injectable } from '@nestjs/common';
import type { Preconditions } from '@platform/service-defaults';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-error';
import { CalendarsRepository } from './calendars.repository';

/**
 * Schedules changed per transaction, so that it locks few rows and ends soon, however many removed schedules
 * name the calendar.
 */
const SCHEDULES_PER_STEP = 1_000;
/**
 * Steps of one request, so that it ends within seconds. Finished steps stay committed, and the next request
 * continues.
 */
const STEPS_PER_REQUEST = 50;

/**
 * Deletes calendars. Removed schedules lose their reference to the calendar first, in steps and without a
 * lock on it, so that schedules that name it can still be created. The calendar is locked only once no
 * reference remains.
 */
@Injectable()
export class CalendarRemovalService {
  constructor(
    private readonly calendars: CalendarsRepository,
    private readonly outbound: OutboundProxy,
  ) {}

  /**
   * Deletes a calendar. Returns false if it does not exist.
   * @throws {TaskError} calendar-changed, outcome-unknown; calendar-in-use if a schedule that is not removed
   * names it; calendar-still-named if more removed schedules name it than one request changes (50,000)
   */
  async delete(calendarId: string, conditions: Preconditions): Promise<boolean> {
    for (let step = 1; step <= STEPS_PER_REQUEST; step += 1) {
      const progress = await this.outbound.transaction((manager) =>
        this.calendars.clearReferences(manager, { calendarId, conditions, limit: SCHEDULES_PER_STEP }),
      );
      if (progress === 'absent') return false;
      if (progress === 'more') continue;
      const deleted = await this.outbound.transaction<'absent' | 'named' | 'deleted'>(
        (manager, unconfirmed) =>
          this.calendars.delete(manager, calendarId, { conditions, mayBeDeleted: unconfirmed === 'deleted' }),
      );
      if (deleted !== 'named') return deleted === 'deleted';
    }
    throw new TaskError('calendar-still-named', { retryAfterSeconds: 1 });
  }
}
