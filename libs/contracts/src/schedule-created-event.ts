import { z } from 'zod';
import { actor, cron, identifier, instant, integerId, timeZone } from './fields';
import { defineMessage, type MessageOf } from './message-contract';

/** The fields of ScheduleCreatedEvent, which the scheduling service passes on unchanged as IScheduleCreatedEvent. */
export const scheduleCreatedFields = z.object({
  scheduleId: identifier,
  facilityId: integerId,
  name: z.string(),
  schedule: cron,
  timeZone,
  createdAtUtc: instant,
  createdBy: actor,
});

/** A schedule was stored. Source: task messaging spec, Events. */
export const ScheduleCreatedEvent = defineMessage({
  name: 'ScheduleCreatedEvent',
  bus: 'main',
  description: 'Published by the task service after POST /Schedules; received by the scheduling service.',
  schema: scheduleCreatedFields,
});
export type ScheduleCreatedEvent = MessageOf<typeof ScheduleCreatedEvent>;
