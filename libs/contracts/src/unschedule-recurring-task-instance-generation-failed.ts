import { z } from 'zod';
import { integerId } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

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
