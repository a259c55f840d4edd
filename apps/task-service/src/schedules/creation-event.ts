import { ScheduleCreatedEvent } from '@platform/contracts';
import type { Actor } from '@platform/contracts';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';

/** What the event of a schedule to be tells. */
export interface ScheduleToBe {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly schedule: string;
  readonly timeZone: string;
  readonly createdBy: Actor;
  /** By the replica's clock; `insertSchedules` puts the database's instant in its place. */
  readonly createdAt: Date;
}

/** The ScheduleCreatedEvent of a schedule that is not stored yet. */
export function scheduleCreated(schedule: ScheduleToBe): OutboundEvent {
  const { scheduleId, facilityId, name, timeZone, createdAt, createdBy } = schedule;
  const message = {
    scheduleId,
    facilityId,
    name,
    schedule: schedule.schedule,
    timeZone,
    createdAtUtc: createdAt.toISOString(),
    createdBy,
  };
  return outboundEvent(ScheduleCreatedEvent, message, facilityId);
}
