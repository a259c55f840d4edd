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
 * Wire name IScheduleCreatedEvent; the type is named apart, since dropping the `I` would collide with
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

/** One fire of a facility's trigger. Source: task messaging spec, Events and Scheduler rules. */
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

/** Which message a subsystem sends on which cron. Source: task messaging spec, ScheduledMessageEvent. */
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

/** Answer: the facility has its trigger. `replaced` tells whether one was there before. */
export const ScheduleRecurringTaskInstanceGenerationSucceeded = defineMessage({
  name: 'ScheduleRecurringTaskInstanceGenerationSucceeded',
  bus: 'scheduling',
  description: 'Answer of the task service: recurring generation is configured for the facility.',
  schema: z.object({
    facilityId: integerId,
    scheduleName: z.string(),
    scheduleGroup: z.string(),
    schedule: cron,
    timeZone,
    nextFireTimeUtc: instant,
    replaced: z.boolean(),
    /** Given when the trigger is paused: it fires at no time until it is resumed. */
    state: z.literal('PAUSED').optional(),
  }),
});
export type ScheduleRecurringTaskInstanceGenerationSucceeded = MessageOf<
  typeof ScheduleRecurringTaskInstanceGenerationSucceeded
>;

/** Answer: the request was understood and refused. `code` is for programs, `reason` for people. */
export const ScheduleRecurringTaskInstanceGenerationFailed = defineMessage({
  name: 'ScheduleRecurringTaskInstanceGenerationFailed',
  bus: 'scheduling',
  description: 'Answer of the task service: recurring generation could not be configured, and why.',
  schema: z.object({ facilityId: integerId, code: z.string(), reason: z.string() }),
});
export type ScheduleRecurringTaskInstanceGenerationFailed = MessageOf<
  typeof ScheduleRecurringTaskInstanceGenerationFailed
>;

/**
 * Asks for recurring generation at a facility; without a schedule the receiver's default applies. Source:
 * task messaging spec, Events.
 */
export const ScheduleRecurringTaskInstanceGenerationRequest = defineRequest({
  name: 'IScheduleRecurringTaskInstanceGenerationRequest',
  bus: 'scheduling',
  description: 'Request to configure recurring generation for a facility; answered Succeeded or Failed.',
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
 * Answer: the facility has no trigger any more. `removed` tells whether there was one. The name fills a gap
 * of the spec.
 */
export const UnscheduleRecurringTaskInstanceGenerationSucceeded = defineMessage({
  name: 'UnscheduleRecurringTaskInstanceGenerationSucceeded',
  bus: 'scheduling',
  description: 'Answer of the task service: the facility has no recurring generation any more.',
  schema: z.object({ facilityId: integerId, removed: z.boolean() }),
});
export type UnscheduleRecurringTaskInstanceGenerationSucceeded = MessageOf<
  typeof UnscheduleRecurringTaskInstanceGenerationSucceeded
>;

/** Answer: the request was understood and refused. Source: task messaging spec, Events. */
export const UnscheduleRecurringTaskInstanceGenerationFailed = defineMessage({
  name: 'UnscheduleRecurringTaskInstanceGenerationFailed',
  bus: 'scheduling',
  description: 'Answer of the task service: recurring generation could not be removed, and why.',
  schema: z.object({ facilityId: integerId, code: z.string(), reason: z.string() }),
});
export type UnscheduleRecurringTaskInstanceGenerationFailed = MessageOf<
  typeof UnscheduleRecurringTaskInstanceGenerationFailed
>;

/** Asks for recurring generation to end at a facility. Source: task messaging spec, Events. */
export const UnscheduleRecurringTaskInstanceGenerationRequest = defineRequest({
  name: 'IUnscheduleRecurringTaskInstanceGenerationRequest',
  bus: 'scheduling',
  description: 'Request to remove recurring generation from a facility; answered Succeeded or Failed.',
  schema: z.object({ facilityId: integerId, requestedBy: z.string().optional() }),
  succeeded: UnscheduleRecurringTaskInstanceGenerationSucceeded,
  failed: UnscheduleRecurringTaskInstanceGenerationFailed,
});
export type UnscheduleRecurringTaskInstanceGenerationRequest = MessageOf<
  typeof UnscheduleRecurringTaskInstanceGenerationRequest
>;
