import { z } from 'zod';
import {
  cron,
  defineMessage,
  defineRequest,
  instant,
  integerId,
  type MessageOf,
  timeZone,
} from './message-contract';
import { scheduleCreatedFields } from './main-bus-messages';

/**
 * Wire name IScheduleCreatedEvent. The type has another name, because without the `I` it would collide with
 * ScheduleCreatedEvent.
 */
export const ScheduleCreatedNotification = defineMessage({
  name: 'IScheduleCreatedEvent',
  bus: 'scheduling',
  description:
    'Published by the scheduling service for each ScheduleCreatedEvent; the task service then generates the instances of that schedule.',
  needsReceiver: true,
  schema: scheduleCreatedFields,
});
export type ScheduleCreatedNotification = MessageOf<typeof ScheduleCreatedNotification>;

/** A facility's trigger fired. Source: task messaging spec, Events and Scheduler rules. */
export const TaskInstanceGenerationRequested = defineMessage({
  name: 'ITaskInstanceGenerationRequested',
  bus: 'scheduling',
  description:
    "Sent by the scheduled job GenerateTaskInstancesSchedule each time a facility's trigger fires; the generation consumer creates the task instances.",
  needsReceiver: true,
  schema: z.object({
    facilityId: integerId,
    scheduledFireTimeUtc: instant,
    fireTimeUtc: instant,
    misfired: z.boolean(),
    missedCount: z.int().min(0),
  }),
});
export type TaskInstanceGenerationRequested = MessageOf<typeof TaskInstanceGenerationRequested>;

/**
 * Announces a message that a subsystem sends on a schedule, with the cron expression. Source: task messaging
 * spec, ScheduledMessageEvent.
 */
export const ScheduledMessageEvent = defineMessage({
  name: 'ScheduledMessageEvent',
  bus: 'scheduling',
  description: 'Emitted by the scheduler when a trigger is created or its cron expression changes.',
  schema: z.object({
    subsystemName: z.string(),
    messageName: z.string(),
    description: z.string(),
    schedule: cron,
  }),
});
export type ScheduledMessageEvent = MessageOf<typeof ScheduledMessageEvent>;

/** Reply: the facility has its trigger. `replaced` is true if it had one before. */
export const ScheduleRecurringTaskInstanceGenerationSucceeded = defineMessage({
  name: 'ScheduleRecurringTaskInstanceGenerationSucceeded',
  bus: 'scheduling',
  description: 'Reply of the task service: recurring generation is configured for the facility.',
  schema: z.object({
    facilityId: integerId,
    scheduleName: z.string(),
    scheduleGroup: z.string(),
    schedule: cron,
    timeZone,
    nextFireTimeUtc: instant,
    replaced: z.boolean(),
    /** Present if the trigger is paused: it does not fire until it is resumed. */
    state: z.literal('PAUSED').optional(),
  }),
});
export type ScheduleRecurringTaskInstanceGenerationSucceeded = MessageOf<
  typeof ScheduleRecurringTaskInstanceGenerationSucceeded
>;

/** Reply: the request was valid but refused. `code` is for programs, `reason` for people. */
export const ScheduleRecurringTaskInstanceGenerationFailed = defineMessage({
  name: 'ScheduleRecurringTaskInstanceGenerationFailed',
  bus: 'scheduling',
  description: 'Reply of the task service: recurring generation could not be configured, with the reason.',
  schema: z.object({ facilityId: integerId, code: z.string(), reason: z.string() }),
});
export type ScheduleRecurringTaskInstanceGenerationFailed = MessageOf<
  typeof ScheduleRecurringTaskInstanceGenerationFailed
>;

/**
 * Requests recurring generation for a facility. Without `schedule` the receiver's default applies. Source:
 * task messaging spec, Events.
 */
export const ScheduleRecurringTaskInstanceGenerationRequest = defineRequest({
  name: 'IScheduleRecurringTaskInstanceGenerationRequest',
  bus: 'scheduling',
  description: 'Request to configure recurring generation for a facility; the reply is Succeeded or Failed.',
  schema: z.object({
    facilityId: integerId,
    schedule: cron.optional(),
    timeZone: timeZone.optional(),
    requestedBy: z.string().optional(),
  }),
  succeeded: ScheduleRecurringTaskInstanceGenerationSucceeded,
  failed: ScheduleRecurringTaskInstanceGenerationFailed,
});
export type ScheduleRecurringTaskInstanceGenerationRequest = MessageOf<
  typeof ScheduleRecurringTaskInstanceGenerationRequest
>;

/**
 * Reply: the facility no longer has a trigger. `removed` is true if it had one. The spec does not name this
 * message.
 */
export const UnscheduleRecurringTaskInstanceGenerationSucceeded = defineMessage({
  name: 'UnscheduleRecurringTaskInstanceGenerationSucceeded',
  bus: 'scheduling',
  description: 'Reply of the task service: the facility no longer has recurring generation.',
  schema: z.object({ facilityId: integerId, removed: z.boolean() }),
});
export type UnscheduleRecurringTaskInstanceGenerationSucceeded = MessageOf<
  typeof UnscheduleRecurringTaskInstanceGenerationSucceeded
>;

/** Reply: the request was valid but refused. Source: task messaging spec, Events. */
export const UnscheduleRecurringTaskInstanceGenerationFailed = defineMessage({
  name: 'UnscheduleRecurringTaskInstanceGenerationFailed',
  bus: 'scheduling',
  description: 'Reply of the task service: recurring generation could not be removed, with the reason.',
  schema: z.object({ facilityId: integerId, code: z.string(), reason: z.string() }),
});
export type UnscheduleRecurringTaskInstanceGenerationFailed = MessageOf<
  typeof UnscheduleRecurringTaskInstanceGenerationFailed
>;

/** Requests the end of recurring generation for a facility. Source: task messaging spec, Events. */
export const UnscheduleRecurringTaskInstanceGenerationRequest = defineRequest({
  name: 'IUnscheduleRecurringTaskInstanceGenerationRequest',
  bus: 'scheduling',
  description: 'Request to remove recurring generation from a facility; the reply is Succeeded or Failed.',
  schema: z.object({ facilityId: integerId, requestedBy: z.string().optional() }),
  succeeded: UnscheduleRecurringTaskInstanceGenerationSucceeded,
  failed: UnscheduleRecurringTaskInstanceGenerationFailed,
});
export type UnscheduleRecurringTaskInstanceGenerationRequest = MessageOf<
  typeof UnscheduleRecurringTaskInstanceGenerationRequest
>;
