import {
  SchedulePausedEvent,
  ScheduleRemovedEvent,
  ScheduleResumedEvent,
  ScheduleUpdatedEvent,
} from '@platform/contracts';
import type { Actor } from '@platform/contracts';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';
import type { Schedule } from './schedule.entity';
import type { ScheduleCommand } from './schedule-states';

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
