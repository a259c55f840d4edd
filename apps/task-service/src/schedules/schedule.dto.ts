import { pageKeyQuery, pageSizeQuery } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import {
  IVY,
  actor,
  cron,
  facilityId,
  facilityIdQuery,
  identifier,
  instant,
  nextPageKey,
  text,
  timeZone as zoneName,
} from '../fields/fields';
import { CronExpressionError, parseCronExpression } from '../recurrence/cron-expression';
import { SCHEDULE_STATUSES } from '../stored-schedules/schedule-states';
import { TimeZoneError, timeZone } from '../recurrence/time-zone';

export const SCHEDULE_ID = '0198f2c4-6a1e-4c3b-9d52-7b1f0e6a2c11';
const TEMPLATE_MAX_LENGTH = 16 * 1_024;

/** Schema of a text that `parse` accepts. A `ParseError` becomes the message of the issue. */
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

const dateOrInstant = z.union([z.iso.date(), z.iso.datetime({ offset: true })], {
  error: 'must be a date such as 2026-04-01, or a date and time with an offset such as 2026-04-01T09:00:00Z',
});
const description = text({ min: 0, max: 2_000 }).nullable();
const template = z
  .record(z.string(), z.unknown())
  .refine((value) => JSON.stringify(value).length <= TEMPLATE_MAX_LENGTH, 'is too large')
  .nullable();
const calendarId = z
  .guid()
  .transform((value) => value.toLowerCase())
  .nullable();
const orNull = <T>(value: T | null | undefined): T | null => value ?? null;

/** Request members that define when a schedule is due. */
const recurrence = {
  schedule: parsable(parseCronExpression, CronExpressionError),
  timeZone: parsable(timeZone, TimeZoneError),
  startDate: dateOrInstant.nullable(),
  endDate: dateOrInstant.nullable(),
  calendarId,
};

/**
 * Body of POST /Schedules. Unknown members are rejected, because a misspelt optional one would be ignored
 * silently. The idempotency digest is computed from the parsed body, so members of later releases must stay
 * undefined if they are absent.
 */
const createScheduleBody = z.strictObject({
  facilityId: z.int().min(1),
  name: text({ min: 1, max: 200 }),
  description: description.optional().transform(orNull),
  schedule: recurrence.schedule,
  timeZone: recurrence.timeZone.default('UTC'),
  startDate: recurrence.startDate.optional().transform(orNull),
  template: template.optional().transform(orNull),
  endDate: recurrence.endDate.optional(),
  calendarId: recurrence.calendarId.optional(),
});

export class CreateScheduleDto extends createZodDto(createScheduleBody) {}

/** Body of PATCH /Schedules/{id}. Absent members are unchanged; null clears a member. */
export class UpdateScheduleDto extends createZodDto(
  z.strictObject({ name: text({ min: 1, max: 200 }), description, ...recurrence, template }).partial(),
) {}

export class PreviewScheduleDto extends createZodDto(
  z.strictObject({
    schedule: recurrence.schedule,
    timeZone: recurrence.timeZone.default('UTC'),
    startDate: recurrence.startDate.optional().transform(orNull),
    endDate: recurrence.endDate.optional().transform(orNull),
    calendarId: recurrence.calendarId.optional().transform(orNull),
    from: z.iso.datetime({ offset: true }).optional(),
    limit: z.int().min(1).max(1_000).default(100),
  }),
) {}

export class ListSchedulesDto extends createZodDto(
  z.strictObject({
    facilityId: facilityIdQuery,
    status: z
      .enum(SCHEDULE_STATUSES)
      .optional()
      .meta({ description: 'Only schedules in this state.', example: 'Active' }),
    pageKey: pageKeyQuery,
    pageSize: pageSizeQuery,
  }),
) {}

export class ScheduleParams extends createZodDto(
  z.object({ id: z.guid().meta({ description: 'The schedule.', example: SCHEDULE_ID }) }),
) {}

// Source: docs/spec-gaps.md.
const schedule = z
  .object({
    scheduleId: identifier('The schedule.'),
    facilityId,
    name: z.string(),
    description: z.string().nullable(),
    schedule: cron,
    timeZone: zoneName,
    startDate: z
      .string()
      .nullable()
      .meta({ description: 'No occurrence before it: a date in the time zone, or an instant.' }),
    endDate: z
      .string()
      .nullable()
      .meta({ description: 'No occurrence after it: a date in the time zone, included, or an instant.' }),
    calendarId: identifier('The calendar whose dates are excluded.').nullable(),
    template: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'Any JSON object. It is copied to the instances.' }),
    status: z.enum(SCHEDULE_STATUSES).meta({
      description: 'Instances are generated only for `Active` schedules. `Ended`: `endDate` has passed.',
    }),
    error: z.string().nullable().meta({
      description:
        'Reason for which no instances are generated although it is Active: it cannot be evaluated, e.g. because this release does not know its time zone. Change or remove it.',
    }),
    releasing: z.int().meta({
      description:
        'Number of instances that the last change has still to cancel. Until then they are Pending.',
    }),
    createdAtUtc: instant('When it was created.'),
    createdBy: actor,
  })
  .meta({
    id: 'Schedule',
    description: 'A recurring task of a facility.',
  });

export class ScheduleDto extends createZodDto(schedule) {}

export class SchedulePageDto extends createZodDto(
  z.object({ schedules: z.array(schedule), nextPageKey }).meta({ id: 'SchedulePage' }),
) {}

export const WEEKLY_ROUND: ScheduleDto = {
  scheduleId: SCHEDULE_ID,
  facilityId: 501,
  name: 'Weekly round',
  description: null,
  schedule: '0 9 * * 1',
  timeZone: 'Europe/Berlin',
  startDate: null,
  endDate: null,
  calendarId: null,
  template: null,
  status: 'Active',
  error: null,
  releasing: 0,
  createdAtUtc: '2026-03-02T09:15:00.123Z',
  createdBy: IVY,
};

export const ETAG = {
  ETag: {
    description: 'Identifies this state of the schedule, for `If-Match`.',
    schema: { type: 'string' },
    required: true,
    example: '"1"',
  },
} as const;

const weekly = {
  facilityId: 501,
  name: 'Weekly round',
  schedule: '0 9 * * 1',
  timeZone: 'Europe/Berlin',
};

export const CREATE_EXAMPLES = {
  weekly: { summary: 'Mondays at nine, local time', value: weekly },
  full: {
    summary: 'With all members',
    value: {
      facilityId: 501,
      name: 'Boiler check',
      description: 'Read the pressure and write it down.',
      schedule: '30 6 1 */3 *',
      timeZone: 'Europe/Berlin',
      startDate: '2026-04-01',
      endDate: '2027-03-31',
      template: { checklist: ['pressure', 'temperature'] },
    },
  },
};

export const UPDATE_EXAMPLES = {
  later: { summary: 'An hour later', value: { schedule: '0 10 * * 1' } },
  ends: { summary: 'Ends with the year', value: { endDate: '2026-12-31' } },
};
