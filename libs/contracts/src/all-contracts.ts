import * as mainBus from './main-bus-messages';
import type { MessageContract } from './message-contract';
import * as schedulingBus from './scheduling-bus-messages';

/** All messages of the platform, in the order of the documentation. */
export const ALL_CONTRACTS: readonly MessageContract<unknown>[] = [
  mainBus.BusinessUnitChangeV1,
  mainBus.ScheduleCreatedEvent,
  mainBus.TaskInstanceCompletedEvent,
  mainBus.ScheduleUpdatedEvent,
  mainBus.SchedulePausedEvent,
  mainBus.ScheduleResumedEvent,
  mainBus.ScheduleRemovedEvent,
  mainBus.TaskInstanceCancelledEvent,
  schedulingBus.ScheduleCreatedNotification,
  schedulingBus.TaskInstanceGenerationRequested,
  schedulingBus.ScheduledMessageEvent,
  schedulingBus.ScheduleRecurringTaskInstanceGenerationRequest,
  schedulingBus.ScheduleRecurringTaskInstanceGenerationSucceeded,
  schedulingBus.ScheduleRecurringTaskInstanceGenerationFailed,
  schedulingBus.UnscheduleRecurringTaskInstanceGenerationRequest,
  schedulingBus.UnscheduleRecurringTaskInstanceGenerationSucceeded,
  schedulingBus.UnscheduleRecurringTaskInstanceGenerationFailed,
];
