import { z } from 'zod';
import { cron, instant, integerId, timeZone } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

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
  }),
});
export type ScheduleRecurringTaskInstanceGenerationSucceeded = MessageOf<
  typeof ScheduleRecurringTaskInstanceGenerationSucceeded
>;
