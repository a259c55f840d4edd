import { z } from 'zod';
import { integerId } from './fields';
import { defineRequest, type MessageOf } from './message-contract';
import { UnscheduleRecurringTaskInstanceGenerationFailed } from './unschedule-recurring-task-instance-generation-failed';
import { UnscheduleRecurringTaskInstanceGenerationSucceeded } from './unschedule-recurring-task-instance-generation-succeeded';

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
