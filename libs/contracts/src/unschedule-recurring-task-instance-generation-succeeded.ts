import { z } from 'zod';
import { integerId } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

/** Answer: the facility has no trigger any more. `removed` tells whether there was one. The name fills a gap of the spec. */
export const UnscheduleRecurringTaskInstanceGenerationSucceeded = defineMessage({
  name: 'UnscheduleRecurringTaskInstanceGenerationSucceeded',
  bus: 'scheduling',
  description: 'Answer of the task service: the facility has no recurring generation any more.',
  schema: z.object({ facilityId: integerId, removed: z.boolean() }),
});
export type UnscheduleRecurringTaskInstanceGenerationSucceeded = MessageOf<
  typeof UnscheduleRecurringTaskInstanceGenerationSucceeded
>;
