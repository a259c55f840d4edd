import { Injectable } from '@nestjs/common';
import { mayWrite, type Preconditions } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-error';
import { CalendarReferencesRepository } from '../stored-schedules/calendar-references.repository';
import { calendarRevision } from './calendar.entity';
import { CalendarsRepository, changedError } from './calendars.repository';

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
 * Deletes calendars. First clears the references of removed schedules, in steps and without a lock on the
 * calendar, so that schedules that name it can still be created. Locks the calendar only once no reference
 * remains.
 */
@Injectable()
export class CalendarRemovalService {
  constructor(
    private readonly calendars: CalendarsRepository,
    private readonly references: CalendarReferencesRepository,
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
        this.clearReferences(manager, calendarId, conditions),
      );
      if (progress === 'absent') return false;
      if (progress === 'more') continue;
      const deleted = await this.outbound.transaction<'absent' | 'named' | 'deleted'>(
        (manager, unconfirmed) =>
          this.deleteUnused(manager, calendarId, { conditions, mayBeDeleted: unconfirmed === 'deleted' }),
      );
      if (deleted !== 'named') return deleted === 'deleted';
    }
    throw new TaskError('calendar-still-named', { retryAfterSeconds: 1 });
  }

  /** Clears the references of the next removed schedules to the calendar. Does not lock the calendar. */
  private async clearReferences(
    manager: EntityManager,
    calendarId: string,
    conditions: Preconditions,
  ): Promise<'absent' | 'more' | 'done'> {
    const found = await this.calendars.find(calendarId, manager);
    if (!mayWrite(conditions, found === null ? null : calendarRevision(found)))
      throw new TaskError('calendar-changed');
    if (!found) return 'absent';
    const { isInUse, hasMore } = await this.references.clear(manager, calendarId, SCHEDULES_PER_STEP);
    if (isInUse) throw new TaskError('calendar-in-use');
    return hasMore ? 'more' : 'done';
  }

  /**
   * Deletes a calendar that no schedule names. Returns `named` if a removed schedule still names it.
   * @param attempt `mayBeDeleted`: an earlier attempt, whose commit was not confirmed, may have deleted it
   */
  private async deleteUnused(
    manager: EntityManager,
    calendarId: string,
    { conditions, mayBeDeleted }: { conditions: Preconditions; mayBeDeleted: boolean },
  ): Promise<'absent' | 'named' | 'deleted'> {
    // The lock keeps other transactions from creating schedules that name it.
    const found = await this.calendars.lock(manager, calendarId, 'pessimistic_write');
    if (found === null && mayBeDeleted) return 'deleted';
    if (!mayWrite(conditions, found === null ? null : calendarRevision(found)))
      throw changedError(mayBeDeleted);
    if (!found) return 'absent';
    const naming = await this.references.findNaming(manager, calendarId);
    if (naming !== null && naming.status !== 'Removed') throw new TaskError('calendar-in-use');
    if (naming !== null) return 'named';
    await this.calendars.delete(manager, calendarId);
    return 'deleted';
  }
}
