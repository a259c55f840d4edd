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

/** Most facilities of one change: it is applied in one transaction. Source: docs/spec-gaps.md. */
const MAX_FACILITIES = 10_000;

/**
 * What happened to a business unit. Source: task messaging spec, Events; fields from the design decisions.
 */
export const BusinessUnitChangeV1 = defineMessage({
  name: 'IBusinessUnitChangeV1',
  bus: 'main',
  description:
    'Published by the customers service. Activated adds facilities to the business unit, Updated carries the whole list of an active one, Deactivated ends all of its facilities. The task service schedules recurring generation for each facility that a business unit holds, and removes it with the last one.',
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
 * The fields of ScheduleCreatedEvent, which the scheduling service passes on unchanged as
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

/** A schedule as it is after a change. */
const scheduleChangedFields = scheduleCreatedFields.extend({
  ...changeFields,
  /** Instances due before it are as they were. */
  effectiveFromUtc: instant,
  /** Instances that were still to come and are cancelled. */
  cancelledInstances: z.int().min(0),
});

const sent = 'Published by the task service once for each change; received by external systems.';

/** A schedule was changed. Source: docs/spec-gaps.md. */
export const ScheduleUpdatedEvent = defineMessage({
  name: 'ScheduleUpdatedEvent',
  bus: 'main',
  description: `${sent} A schedule was changed: its instances to come follow the new one.`,
  schema: scheduleChangedFields,
});

/** A schedule generates nothing until it is resumed. Source: docs/spec-gaps.md. */
export const SchedulePausedEvent = defineMessage({
  name: 'SchedulePausedEvent',
  bus: 'main',
  description: `${sent} A schedule was paused: its instances to come are cancelled.`,
  schema: scheduleChangedFields,
});

/** A paused schedule generates again. Source: docs/spec-gaps.md. */
export const ScheduleResumedEvent = defineMessage({
  name: 'ScheduleResumedEvent',
  bus: 'main',
  description: `${sent} A paused schedule was resumed: it generates from now on, nothing for the pause.`,
  schema: scheduleChangedFields,
});

/** A schedule ended for good. Source: docs/spec-gaps.md. */
export const ScheduleRemovedEvent = defineMessage({
  name: 'ScheduleRemovedEvent',
  bus: 'main',
  description: `${sent} A schedule was removed for good: its instances to come are cancelled.`,
  schema: scheduleChangedFields,
});

/** A person cancelled a task instance. Source: docs/spec-gaps.md. */
export const TaskInstanceCancelledEvent = defineMessage({
  name: 'TaskInstanceCancelledEvent',
  bus: 'main',
  description:
    'Published by the task service once for each task instance that a person cancelled; received by external systems. Instances cancelled with their schedule are counted in its event.',
  schema: z.object({
    taskInstanceId: identifier,
    scheduleId: identifier,
    facilityId: integerId,
    dueAtUtc: instant,
    ...changeFields,
  }),
});
export type TaskInstanceCancelledEvent = MessageOf<typeof TaskInstanceCancelledEvent>;
