import { z } from 'zod';
import { cron } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

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
