import { z } from 'zod';
import { instant, integerId } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

/** One fire of a facility's trigger. Source: task messaging spec, Events and Scheduler rules. */
export const TaskInstanceGenerationRequested = defineMessage({
  name: 'ITaskInstanceGenerationRequested',
  bus: 'scheduling',
  description:
    "Sent by the scheduled job GenerateTaskInstancesSchedule each time a facility's trigger fires; the generation consumer creates the task instances.",
  schema: z.object({
    facilityId: integerId,
    scheduledFireTimeUtc: instant,
    fireTimeUtc: instant,
    misfired: z.boolean(),
    missedCount: z.int().min(0),
  }),
});
export type TaskInstanceGenerationRequested = MessageOf<typeof TaskInstanceGenerationRequested>;
