import { BusinessUnitChangeV1 } from './business-unit-change-v1';
import type { MessageContract } from './message-contract';
import { ScheduleCreatedEvent } from './schedule-created-event';
import { ScheduleCreatedNotification } from './schedule-created-notification';
import { ScheduleRecurringTaskInstanceGenerationFailed } from './schedule-recurring-task-instance-generation-failed';
import { ScheduleRecurringTaskInstanceGenerationRequest } from './schedule-recurring-task-instance-generation-request';
import { ScheduleRecurringTaskInstanceGenerationSucceeded } from './schedule-recurring-task-instance-generation-succeeded';
import { ScheduledMessageEvent } from './scheduled-message-event';
import { TaskInstanceCompletedEvent } from './task-instance-completed-event';
import { TaskInstanceGenerationRequested } from './task-instance-generation-requested';
import { UnscheduleRecurringTaskInstanceGenerationFailed } from './unschedule-recurring-task-instance-generation-failed';
import { UnscheduleRecurringTaskInstanceGenerationRequest } from './unschedule-recurring-task-instance-generation-request';
import { UnscheduleRecurringTaskInstanceGenerationSucceeded } from './unschedule-recurring-task-instance-generation-succeeded';

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
