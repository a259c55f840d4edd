import { z } from 'zod';
import { cron, integerId, timeZone } from './fields';
import { defineRequest, type MessageOf } from './message-contract';
import { ScheduleRecurringTaskInstanceGenerationFailed } from './schedule-recurring-task-instance-generation-failed';
import { ScheduleRecurringTaskInstanceGenerationSucceeded } from './schedule-recurring-task-instance-generation-succeeded';

/** Asks for recurring generation at a facility; without a schedule the receiver's default applies. Source: task messaging spec, Events. */
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
