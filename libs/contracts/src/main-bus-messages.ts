import { z } from 'zod';
import {
  actor,
  cron,
  defineMessage,
  identifier,
  instant,
  integerId,
  type MessageOf,
  timeZone,
} from './message-contract';

/** Maximum facilities of one change, which is applied in one transaction. Source: docs/spec-gaps.md. */
const MAX_FACILITIES = 10_000;

/**
 * A business unit was activated, updated or deactivated. Source: task messaging spec, Events; fields from the
 * design decisions.
 */
export const BusinessUnitChangeV1 = defineMessage({
  name: 'IBusinessUnitChangeV1',
  bus: 'main',
  description:
    'Published by the customers service. Activated adds facilities to the business unit, Updated carries the full list of facilities of an active business unit, Deactivated removes all facilities of the business unit. The task service schedules recurring generation for each facility that belongs to a business unit, and removes it when the facility no longer belongs to any.',
  needsReceiver: true,
  schema: z.object({
    eventId: identifier,
    occurredAtUtc: instant,
    businessUnitId: integerId,
    facilityIds: z.array(integerId).max(MAX_FACILITIES),
    changeType: z.enum(['Activated', 'Deactivated', 'Updated']),
    timeZone: timeZone.optional(),
  }),
});
export type BusinessUnitChangeV1 = MessageOf<typeof BusinessUnitChangeV1>;

/**
 * The fields of ScheduleCreatedEvent. The scheduling service forwards them unchanged as
 * IScheduleCreatedEvent.
 */
export const scheduleCreatedFields = z.object({
  scheduleId: identifier,
  facilityId: integerId,
  name: z.string(),
  schedule: cron,
  timeZone,
  createdAtUtc: instant,
  createdBy: actor,
});

/** A schedule was stored. Source: task messaging spec, Events. */
export const ScheduleCreatedEvent = defineMessage({
  name: 'ScheduleCreatedEvent',
  bus: 'main',
  description: 'Published by the task service after POST /Schedules; received by the scheduling service.',
  needsReceiver: true,
  schema: scheduleCreatedFields,
});
export type ScheduleCreatedEvent = MessageOf<typeof ScheduleCreatedEvent>;

/** A task instance was completed. Source: task messaging spec, Events. */
export const TaskInstanceCompletedEvent = defineMessage({
  name: 'TaskInstanceCompletedEvent',
  bus: 'main',
  description:
    'Published by the task service once for each completed task instance; received by external systems.',
  schema: z.object({
    taskInstanceId: identifier,
    scheduleId: identifier,
    facilityId: integerId,
    dueAtUtc: instant,
    completedAtUtc: instant,
    completedBy: actor,
  }),
});
export type TaskInstanceCompletedEvent = MessageOf<typeof TaskInstanceCompletedEvent>;

const changeFields = {
  changedAtUtc: instant,
  changedBy: actor,
};

/** The fields of a schedule after a change. */
const scheduleChangedFields = scheduleCreatedFields.extend({
  ...changeFields,
  /** Instances due before this instant are unchanged. */
  effectiveFromUtc: instant,
  /** Number of future instances that the change cancelled. */
  cancelledInstances: z.int().min(0),
});

const sent = 'Published by the task service once for each change; received by external systems.';

/** A schedule was changed. Source: docs/spec-gaps.md. */
export const ScheduleUpdatedEvent = defineMessage({
  name: 'ScheduleUpdatedEvent',
  bus: 'main',
  description: `${sent} A schedule was changed: future instances follow the new schedule.`,
  schema: scheduleChangedFields,
});

/** A schedule was paused: it generates nothing until it is resumed. Source: docs/spec-gaps.md. */
export const SchedulePausedEvent = defineMessage({
  name: 'SchedulePausedEvent',
  bus: 'main',
  description: `${sent} A schedule was paused: its future instances are cancelled.`,
  schema: scheduleChangedFields,
});

/** A paused schedule was resumed: it generates again. Source: docs/spec-gaps.md. */
export const ScheduleResumedEvent = defineMessage({
  name: 'ScheduleResumedEvent',
  bus: 'main',
  description: `${sent} A paused schedule was resumed: it generates instances from now on, and none for the time of the pause.`,
  schema: scheduleChangedFields,
});

/** A schedule was removed permanently. Source: docs/spec-gaps.md. */
export const ScheduleRemovedEvent = defineMessage({
  name: 'ScheduleRemovedEvent',
  bus: 'main',
  description: `${sent} A schedule was removed permanently: its future instances are cancelled.`,
  schema: scheduleChangedFields,
});

/** A person cancelled a task instance. Source: docs/spec-gaps.md. */
export const TaskInstanceCancelledEvent = defineMessage({
  name: 'TaskInstanceCancelledEvent',
  bus: 'main',
  description:
    'Published by the task service once for each task instance that a person cancelled; received by external systems. Instances cancelled together with their schedule are only counted, in the event of the schedule.',
  schema: z.object({
    taskInstanceId: identifier,
    scheduleId: identifier,
    facilityId: integerId,
    dueAtUtc: instant,
    ...changeFields,
  }),
});
export type TaskInstanceCancelledEvent = MessageOf<typeof TaskInstanceCancelledEvent>;
