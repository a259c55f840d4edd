import { z } from 'zod';
import { actor, identifier, instant, integerId } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

/** A task instance was completed. Source: task messaging spec, Events. */
export const TaskInstanceCompletedEvent = defineMessage({
  name: 'TaskInstanceCompletedEvent',
  bus: 'main',
  description:
    'Published by the task service once for each completed task instance; received by external systems.',
  schema: z.object({
    taskInstanceId: identifier,
    scheduleId: identifier,
    facilityId: integerId,
    dueAtUtc: instant,
    completedAtUtc: instant,
    completedBy: actor,
  }),
});
export type TaskInstanceCompletedEvent = MessageOf<typeof TaskInstanceCompletedEvent>;
