import { Injectable, Logger } from '@nestjs/common';
import { inParts } from '@platform/database';
import type { EntityManager } from 'typeorm';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { generationRequested } from '../scheduler/due-fire';
import { CalendarRolloutsRepository, type RolloutPosition } from './calendar-rollouts.repository';

/**
 * Facilities of one transaction: it holds few rows and ends soon, however many facilities follow the
 * calendar.
 */
const FACILITIES_PER_STEP = 1_000;

/**
 * Requests generation for the facilities whose schedules follow a changed calendar. The transaction of the
 * change only notes it: before its commit, others give schedules to the calendar and generate by the dates as
 * they were. A job of any replica goes over the facilities afterwards, and once more when all transactions
 * that began before the commit have ended.
 */
@Injectable()
export class CalendarRolloutService {
  private readonly logger = new Logger(CalendarRolloutService.name);

  constructor(
    private readonly rollouts: CalendarRolloutsRepository,
    private readonly outbound: OutboundProxy,
  ) {}

  /** Notes a change in its transaction. */
  begin(manager: EntityManager, calendarId: string, changedAt: Date): Promise<void> {
    return this.rollouts.begin(manager, calendarId, changedAt);
  }

  /** Takes the next step of a change that is locked. */
  async goOn(manager: EntityManager, position: RolloutPosition): Promise<void> {
    const { calendarId, changedAt, afterFacilityId, isSettled } = position;
    if (isSettled === null) return this.rollouts.noteTransactions(manager, calendarId);
    const isLastPass = position.isLastPass || (afterFacilityId === 0 && isSettled);
    const facilities = await this.rollouts.nextFacilities(manager, position, FACILITIES_PER_STEP);
    const refused = await inParts(manager, facilities, (savepoint, some) =>
      this.outbound.store(
        savepoint,
        some.map((facilityId) => generationRequested(facilityId, { requestedAt: changedAt })),
      ),
    );
    // Their next fire follows the dates as well.
    for (const { item, error } of refused)
      this.logger.error(`facility ${String(item)}: generation cannot be requested: ${String(error)}`);
    const last = facilities.at(-1);
    if (last !== undefined && facilities.length === FACILITIES_PER_STEP)
      return this.rollouts.advance(manager, { calendarId, afterFacilityId: last, isLastPass });
    if (isLastPass) return this.rollouts.delete(manager, calendarId);
    return this.rollouts.advance(manager, { calendarId, afterFacilityId: 0, isLastPass: true });
  }
}
