import {
  type Actor,
  SchedulePausedEvent,
  ScheduleRemovedEvent,
  ScheduleResumedEvent,
  ScheduleUpdatedEvent,
} from '@platform/contracts';
import { outboundEvent, type OutboundEvent } from '../outbound/outbound-event';
import type { ScheduleCommand } from '../stored-schedules/schedule-states';
import type { Schedule } from '../stored-schedules/schedule.entity';

const EVENTS = {
  update: ScheduleUpdatedEvent,
  pause: SchedulePausedEvent,
  resume: ScheduleResumedEvent,
  remove: ScheduleRemovedEvent,
} as const satisfies Record<ScheduleCommand, unknown>;

/** Returns the event of a command that has changed a schedule. */
export function scheduleChanged(
  command: ScheduleCommand,
  schedule: Schedule,
  {
    changedAt,
    changedBy,
    cancelledInstances,
  }: { changedAt: Date; changedBy: Actor; cancelledInstances: number },
): OutboundEvent {
  const { scheduleId, facilityId, name } = schedule;
  const createdBy = {
    personId: schedule.createdByPersonId,
    name: schedule.createdByName,
    persona: schedule.createdByPersona,
  };
  return outboundEvent(
    EVENTS[command],
    {
      scheduleId,
      facilityId,
      name,
      schedule: sendable(schedule.schedule, 200),
      timeZone: sendable(schedule.timeZone, 100),
      createdAtUtc: schedule.createdAt.toISOString(),
      createdBy,
      changedAtUtc: changedAt.toISOString(),
      changedBy,
      effectiveFromUtc: changedAt.toISOString(),
      cancelledInstances,
    },
    facilityId,
  );
}

/**
 * Makes a stored text valid for the event: a schedule that cannot be evaluated must still be repairable and
 * removable.
 */
function sendable(text: string, maxLength: number): string {
  return text === '' ? 'unknown' : text.slice(0, maxLength);
}
