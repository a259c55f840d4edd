import type { Actor } from '@platform/contracts';
import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { facilityIdQuery, text } from '../fields/request-fields';
import { CronExpressionError, parseCronExpression } from './cron-expression';
import { SCHEDULE_STATUSES } from './schedule.entity';
import type { Schedule, ScheduleStatus } from './schedule.entity';
import { TimeZoneError, timeZone } from './time-zone';

const TEMPLATE_MAX_LENGTH = 16 * 1_024;

/** Text that `parse` takes; its own kind of error says what is wrong with any other. */
function parsable(parse: (text: string) => unknown, ParseError: new () => Error): z.ZodString {
  return z.string().superRefine((value, context) => {
    try {
      parse(value);
    } catch (error) {
      if (!(error instanceof ParseError)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
    }
  });
}

/** Body of POST /Schedules. Unknown members are refused: a misspelt optional one would be lost silently. */
const createScheduleBody = z.strictObject({
  facilityId: z.int().min(1),
  name: text({ min: 1, max: 200 }),
  description: text({ min: 0, max: 2_000 })
    .nullish()
    .transform((value) => value ?? null),
  schedule: parsable(parseCronExpression, CronExpressionError),
  timeZone: parsable(timeZone, TimeZoneError).default('UTC'),
  startDate: z
    .union([z.iso.date(), z.iso.datetime({ offset: true })])
    .nullish()
    .transform((value) => value ?? null),
  template: z
    .record(z.string(), z.unknown())
    .refine((value) => JSON.stringify(value).length <= TEMPLATE_MAX_LENGTH, 'is too large')
    .nullish()
    .transform((value) => value ?? null),
});

export class CreateScheduleDto extends createZodDto(createScheduleBody) {}

export class ListSchedulesDto extends createZodDto(
  z.object({
    facilityId: facilityIdQuery,
    status: z.enum(SCHEDULE_STATUSES).optional(),
    pageKey: pageKeyQuery,
    pageSize: pageSizeQuery,
  }),
) {}

export class ScheduleParams extends createZodDto(z.object({ id: z.guid() })) {}

/** A schedule as responses show it. Source: docs/spec-gaps.md. */
export interface ScheduleBody {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly description: string | null;
  readonly schedule: string;
  readonly timeZone: string;
  readonly startDate: string | null;
  readonly status: ScheduleStatus;
  readonly createdAtUtc: string;
  readonly createdBy: Actor;
}

/** The schedule as responses show it. */
export function scheduleBody(schedule: Schedule): ScheduleBody {
  return {
    scheduleId: schedule.scheduleId,
    facilityId: schedule.facilityId,
    name: schedule.name,
    description: schedule.description,
    schedule: schedule.schedule,
    timeZone: schedule.timeZone,
    startDate: schedule.startDate,
    status: schedule.status,
    createdAtUtc: schedule.createdAt.toISOString(),
    createdBy: {
      personId: schedule.createdByPersonId,
      name: schedule.createdByName,
      persona: schedule.createdByPersona,
    },
  };
}
