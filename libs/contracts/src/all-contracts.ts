import { BusinessUnitChangeV1, ScheduleCreatedEvent, TaskInstanceCompletedEvent } from './main-bus-messages';
import type { MessageContract } from './message-contract';
import {
  ScheduleCreatedNotification,
  ScheduledMessageEvent,
  ScheduleRecurringTaskInstanceGenerationFailed,
  ScheduleRecurringTaskInstanceGenerationRequest,
  ScheduleRecurringTaskInstanceGenerationSucceeded,
  TaskInstanceGenerationRequested,
  UnscheduleRecurringTaskInstanceGenerationFailed,
  UnscheduleRecurringTaskInstanceGenerationRequest,
  UnscheduleRecurringTaskInstanceGenerationSucceeded,
} from './scheduling-bus-messages';

/** Every message of the platform, in the order in which the documentation lists them. */
export const ALL_CONTRACTS: readonly MessageContract<unknown>[] = [
  BusinessUnitChangeV1,
  ScheduleCreatedEvent,
  TaskInstanceCompletedEvent,
  ScheduleCreatedNotification,
  TaskInstanceGenerationRequested,
  ScheduledMessageEvent,
  ScheduleRecurringTaskInstanceGenerationRequest,
  ScheduleRecurringTaskInstanceGenerationSucceeded,
  ScheduleRecurringTaskInstanceGenerationFailed,
  UnscheduleRecurringTaskInstanceGenerationRequest,
  UnscheduleRecurringTaskInstanceGenerationSucceeded,
  UnscheduleRecurringTaskInstanceGenerationFailed,
];
