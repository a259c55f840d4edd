import type { Bus } from '@platform/contracts';

export const QUEUES = {
  businessUnitChange: 'task-service.business-unit-change',
  scheduleRequest: 'task-service.schedule-recurring-task-instance-generation',
  unscheduleRequest: 'task-service.unschedule-recurring-task-instance-generation',
  generation: 'task-service.task-instance-generation',
  scheduleCreated: 'task-service.schedule-created',
} as const;

export type QueueName = (typeof QUEUES)[keyof typeof QUEUES];

/** All delays for which a message may wait in the broker before a retry, over all queues. */
export const RETRY_DELAYS_MS = [
  1_000, 5_000, 10_000, 15_000, 30_000, 60_000, 100_000, 180_000, 300_000,
] as const;

export const BUS_OF_QUEUE: Readonly<Record<QueueName, Bus>> = {
  [QUEUES.businessUnitChange]: 'main',
  [QUEUES.scheduleRequest]: 'scheduling',
  [QUEUES.unscheduleRequest]: 'scheduling',
  [QUEUES.generation]: 'scheduling',
  [QUEUES.scheduleCreated]: 'scheduling',
};
