import { Injectable, Logger } from '@nestjs/common';
import { allOrEach } from '@platform/database';
import type { EntityManager } from 'typeorm';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { generationRequested } from '../scheduler/due-fire';
import { CalendarRolloutsRepository, type RolloutPosition } from './calendar-rollouts.repository';

/**
 * Facilities per transaction, so that it locks few rows and ends soon, however many facilities follow the
 * calendar.
 */
const FACILITIES_PER_STEP = 1_000;

/**
 * Requests generation for the facilities whose schedules follow a changed calendar. The transaction of the
 * change only records a rollout: until it commits, other transactions still create and generate schedules by
 * the old dates. Afterwards a job on any replica walks the facilities, and walks them again once all
 * transactions that began before the commit have ended.
 */
@Injectable()
export class CalendarRolloutService {
  private readonly logger = new Logger(CalendarRolloutService.name);

  constructor(
    private readonly rollouts: CalendarRolloutsRepository,
    private readonly outbound: OutboundProxy,
  ) {}

  /** Records a rollout in the transaction of the change. */
  begin(manager: EntityManager, calendarId: string, changedAt: Date): Promise<void> {
    return this.rollouts.begin(manager, calendarId, changedAt);
  }

  /** Runs the next step of a locked rollout. */
  async advance(manager: EntityManager, position: RolloutPosition): Promise<void> {
    const { calendarId, changedAt, afterFacilityId, isSettled } = position;
    if (isSettled === null) return this.rollouts.recordNextTransaction(manager, calendarId);
    const isLastPass = position.isLastPass || (afterFacilityId === 0 && isSettled);
    const facilities = await this.rollouts.nextFacilities(manager, position, FACILITIES_PER_STEP);
    const refused = await allOrEach(manager, facilities, (savepoint, some) =>
      this.outbound.store(
        savepoint,
        some.map((facilityId) => generationRequested(facilityId, { requestedAt: changedAt })),
      ),
    );
    // Not retried: the next regular fire of these facilities follows the new dates as well.
    for (const { item, error } of refused)
      this.logger.error(`facility ${String(item)}: generation cannot be requested: ${String(error)}`);
    const last = facilities.at(-1);
    if (last !== undefined && facilities.length === FACILITIES_PER_STEP)
      return this.rollouts.advance(manager, { calendarId, afterFacilityId: last, isLastPass });
    if (isLastPass) return this.rollouts.delete(manager, calendarId);
    return this.rollouts.advance(manager, { calendarId, afterFacilityId: 0, isLastPass: true });
  }
}
