import { ScheduleCreatedEvent } from '@platform/contracts';
import type { Actor } from '@platform/contracts';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';

/** Stands where the instant of creation belongs until the database, whose clock decides it, puts it there. */
const NOT_YET_KNOWN = '1970-01-01T00:00:00.000Z';
/** Quotes within a JSON string are escaped, so no text of a caller reads like this. */
const GAP = `"createdAtUtc":"${NOT_YET_KNOWN}"`;

/** What the event of a schedule to be tells. */
export interface ScheduleToBe {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly schedule: string;
  readonly timeZone: string;
  readonly createdBy: Actor;
}

/** The ScheduleCreatedEvent of a schedule that is not stored yet: `splitAtCreation` finds the gap in its envelope. */
export function scheduleCreated(schedule: ScheduleToBe): OutboundEvent {
  const { scheduleId, facilityId, name, timeZone, createdBy } = schedule;
  const message = {
    scheduleId,
    facilityId,
    name,
    schedule: schedule.schedule,
    timeZone,
    createdAtUtc: NOT_YET_KNOWN,
    createdBy,
  };
  return outboundEvent(ScheduleCreatedEvent, message, facilityId);
}

/** What comes before and after the instant of creation in the JSON of an envelope. @throws {Error} unless there is one gap */
export function splitAtCreation(body: string): [before: string, after: string] {
  const [before, after, ...more] = body.split(GAP);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error('the envelope of a ScheduleCreatedEvent has no single createdAtUtc');
  return [`${before}"createdAtUtc":"`, `"${after}`];
}
