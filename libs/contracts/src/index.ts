export type { Bus, MessageContract, RequestContract } from './message-contract';
export type { Actor } from './message-contract';
export { InvalidMessageError, readMessage } from './read-message';

export {
  BusinessUnitChangeV1,
  ScheduleCreatedEvent,
  SchedulePausedEvent,
  ScheduleRemovedEvent,
  ScheduleResumedEvent,
  ScheduleUpdatedEvent,
  TaskInstanceCancelledEvent,
  TaskInstanceCompletedEvent,
} from './main-bus-messages';
export {
  ScheduleCreatedNotification,
  ScheduledMessageEvent,
  ScheduleRecurringTaskInstanceGenerationRequest,
  ScheduleRecurringTaskInstanceGenerationSucceeded,
  TaskInstanceGenerationRequested,
  UnscheduleRecurringTaskInstanceGenerationRequest,
  UnscheduleRecurringTaskInstanceGenerationSucceeded,
} from './scheduling-bus-messages';
