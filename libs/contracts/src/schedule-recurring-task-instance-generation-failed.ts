import { z } from 'zod';
import { integerId } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

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
