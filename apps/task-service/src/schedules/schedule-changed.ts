import {
  type Actor,
  SchedulePausedEvent,
  ScheduleRemovedEvent,
  ScheduleResumedEvent,
  ScheduleUpdatedEvent,
} from '@platform/contracts';
import { outboundEvent, type OutboundEvent } from '../outbound/outbound-event';
import type { Schedule, ScheduleCommand } from './schedule.entity';

const EVENTS = {
  update: ScheduleUpdatedEvent,
  pause: SchedulePausedEvent,
  resume: ScheduleResumedEvent,
  remove: ScheduleRemovedEvent,
} as const satisfies Record<ScheduleCommand, unknown>;

/** The event of a command that has changed a schedule. */
export function scheduleChanged(
  command: ScheduleCommand,
  schedule: Schedule,
  {
    changedAt,
    changedBy,
    cancelledInstances,
  }: { changedAt: Date; changedBy: Actor; cancelledInstances: number },
): OutboundEvent {
  const { scheduleId, facilityId, name, timeZone } = schedule;
  const createdBy = {
    personId: schedule.createdByPersonId,
    name: schedule.createdByName,
    persona: schedule.createdByPersona,
  };
  return outboundEvent(
    EVENTS[command],
    {
      ...{ scheduleId, facilityId, name, schedule: schedule.schedule, timeZone },
      ...{ createdAtUtc: schedule.createdAt.toISOString(), createdBy },
      ...{ changedAtUtc: changedAt.toISOString(), changedBy },
      ...{ effectiveFromUtc: changedAt.toISOString(), cancelledInstances },
    },
    facilityId,
  );
}
