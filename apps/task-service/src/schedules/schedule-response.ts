import { entityTag } from '@platform/service-defaults';
import type { FastifyReply } from 'fastify';
import { templateBody } from '../fields/fields';
import { statusOf } from '../stored-schedules/schedule-states';
import type { ScheduleView } from '../stored-schedules/schedules.repository';
import type { ScheduleDto } from './schedule.dto';

export function scheduleBody(schedule: ScheduleView): ScheduleDto {
  return {
    scheduleId: schedule.scheduleId,
    facilityId: schedule.facilityId,
    name: schedule.name,
    description: schedule.description,
    schedule: schedule.schedule,
    timeZone: schedule.timeZone,
    startDate: schedule.startDate,
    endDate: schedule.endDate,
    calendarId: schedule.calendarId,
    template: templateBody(schedule.template),
    status: statusOf(schedule),
    error: schedule.error,
    releasing: schedule.releasing,
    createdAtUtc: schedule.createdAt.toISOString(),
    createdBy: {
      personId: schedule.createdByPersonId,
      name: schedule.createdByName,
      persona: schedule.createdByPersona,
    },
  };
}

/** Sets the ETag header and returns the body of the response. */
export function scheduleResponse(reply: FastifyReply, schedule: ScheduleView): ScheduleDto {
  void reply.header('etag', entityTag(String(schedule.revision)));
  return scheduleBody(schedule);
}
