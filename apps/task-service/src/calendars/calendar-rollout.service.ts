import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { generationRequested } from '../scheduler/due-fire';
import { CalendarRolloutsRepository, type RolloutPosition } from './calendar-rollouts.repository';

/** Facilities of one transaction: it holds few rows and ends soon, however many facilities follow the calendar. */
const FACILITIES_PER_STEP = 1_000;

/** Requests generation for the facilities whose schedules follow a changed calendar. The first step belongs to the transaction of the change,
 *  the others to a job of any replica. */
@Injectable()
export class CalendarRolloutService {
  constructor(
    private readonly rollouts: CalendarRolloutsRepository,
    private readonly outbound: OutboundProxy,
  ) {}

  /** Takes the first step and notes what is left. */
  begin(manager: EntityManager, calendarId: string, changedAt: Date): Promise<void> {
    return this.step(manager, { calendarId, changedAt, afterFacilityId: 0 });
  }

  /** Takes the next step of the change that waited longest. False without one. */
  async goOn(manager: EntityManager): Promise<boolean> {
    const position = await this.rollouts.lockNext(manager);
    if (position === null) return false;
    await this.step(manager, position);
    return true;
  }

  private async step(manager: EntityManager, position: RolloutPosition): Promise<void> {
    const { calendarId, changedAt } = position;
    const facilities = await this.rollouts.nextFacilities(manager, position, FACILITIES_PER_STEP);
    const requests = facilities.map((facilityId) => generationRequested(facilityId, { firedAt: changedAt }));
    await this.outbound.store(manager, requests);
    const last = facilities.at(-1);
    if (last === undefined || facilities.length < FACILITIES_PER_STEP)
      return this.rollouts.delete(manager, calendarId);
    return this.rollouts.put(manager, { calendarId, changedAt, afterFacilityId: last });
  }
}
