import { defineMessage, type MessageOf } from './message-contract';
import { scheduleCreatedFields } from './schedule-created-event';

/** Wire name IScheduleCreatedEvent; the type is named apart, since dropping the `I` would collide with ScheduleCreatedEvent. */
export const ScheduleCreatedNotification = defineMessage({
  name: 'IScheduleCreatedEvent',
  bus: 'scheduling',
  description:
    'Published by the scheduling service for each ScheduleCreatedEvent; the task service then generates the instances of that schedule.',
  schema: scheduleCreatedFields,
});
export type ScheduleCreatedNotification = MessageOf<typeof ScheduleCreatedNotification>;
