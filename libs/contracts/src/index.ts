export type { Bus, MessageContract, RequestContract } from './message-contract';
export type { Actor } from './fields';
export { InvalidMessageError, readMessage } from './read-message';

export { BusinessUnitChangeV1 } from './business-unit-change-v1';
export { ScheduleCreatedEvent } from './schedule-created-event';
export { ScheduleCreatedNotification } from './schedule-created-notification';
export { ScheduledMessageEvent } from './scheduled-message-event';
export { TaskInstanceCompletedEvent } from './task-instance-completed-event';
export { TaskInstanceGenerationRequested } from './task-instance-generation-requested';
export { ScheduleRecurringTaskInstanceGenerationFailed } from './schedule-recurring-task-instance-generation-failed';
export { ScheduleRecurringTaskInstanceGenerationRequest } from './schedule-recurring-task-instance-generation-request';
export { ScheduleRecurringTaskInstanceGenerationSucceeded } from './schedule-recurring-task-instance-generation-succeeded';
export { UnscheduleRecurringTaskInstanceGenerationFailed } from './unschedule-recurring-task-instance-generation-failed';
export { UnscheduleRecurringTaskInstanceGenerationRequest } from './unschedule-recurring-task-instance-generation-request';
export { UnscheduleRecurringTaskInstanceGenerationSucceeded } from './unschedule-recurring-task-instance-generation-succeeded';
