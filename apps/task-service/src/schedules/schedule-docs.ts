import { NEXT_PAGE_KEY_DESCRIPTION, PAGE_QUERY_DOCS, jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import {
  FACILITY_QUERY,
  IVY,
  actor,
  cron,
  facilityId,
  identifier,
  instant,
  invalidField,
  taskProblem,
  timeZone,
} from '../fields/answer-fields';
import type { ScheduleBody } from './schedule.dto';
import { SCHEDULE_STATUSES } from './schedule.entity';

const TAG = 'Schedules';
const ID = '0198f2c4-6a1e-4c3b-9d52-7b1f0e6a2c11';

const schedule = z
  .object({
    scheduleId: identifier('The schedule.'),
    facilityId,
    name: z.string(),
    description: z.string().nullable(),
    schedule: cron,
    timeZone,
    startDate: z
      .string()
      .nullable()
      .meta({ description: 'No occurrence before it: a date in the time zone, or an instant.' }),
    status: z.enum(SCHEDULE_STATUSES).meta({ description: 'Only Active ones generate.' }),
    createdAtUtc: instant('When it was created.'),
    createdBy: actor,
  })
  .meta({
    id: 'Schedule',
    description: 'What has to be done at a facility, and when.',
  }) satisfies z.ZodType<ScheduleBody>;

const schedulePage = z
  .object({
    schedules: z.array(schedule),
    nextPageKey: z.string().nullable().meta({ description: NEXT_PAGE_KEY_DESCRIPTION }),
  })
  .meta({ id: 'SchedulePage' });

const WEEKLY_ROUND: ScheduleBody = {
  scheduleId: ID,
  facilityId: 501,
  name: 'Weekly round',
  description: null,
  schedule: '0 9 * * 1',
  timeZone: 'Europe/Berlin',
  startDate: null,
  status: 'Active',
  createdAtUtc: '2026-03-02T09:15:00.123Z',
  createdBy: IVY,
};

export const CREATE_SCHEDULE: OperationDocs = {
  ...{ id: 'createSchedule', tag: TAG, summary: 'Create a schedule' },
  description:
    'Stored together with its ScheduleCreatedEvent, which is published even when the broker is away at the moment. Customers and owners: only for their facilities.',
  headers: {
    'Idempotency-Key': {
      description:
        '1 to 200 visible ASCII characters of your own: a repeated request gets the schedule of the first.',
      schema: { type: 'string', minLength: 1, maxLength: 200, pattern: '^[\\x21-\\x7e]+$' },
      example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
    },
  },
  body: {
    examples: {
      weekly: {
        summary: 'Mondays at nine, local time',
        value: { facilityId: 501, name: 'Weekly round', schedule: '0 9 * * 1', timeZone: 'Europe/Berlin' },
      },
      full: {
        summary: 'Everything',
        value: {
          facilityId: 501,
          name: 'Boiler check',
          description: 'Read the pressure and write it down.',
          schedule: '30 6 1 */3 *',
          timeZone: 'Europe/Berlin',
          startDate: '2026-04-01',
          template: { checklist: ['pressure', 'temperature'] },
        },
      },
    },
  },
  answers: {
    201: jsonAnswer(
      'Created, or created before with this Idempotency-Key.',
      schedule,
      { created: { summary: 'The schedule', value: WEEKLY_ROUND } },
      {
        Location: {
          description: 'Path of the schedule.',
          schema: { type: 'string', format: 'uri-reference' },
          required: true,
          example: `/Schedules/${ID}`,
        },
      },
    ),
    400: invalidField('/Schedules', 'schedule', 'must have five fields separated by single spaces'),
    403: taskProblem(
      'The token or its facilities do not allow this.',
      '/Schedules',
      'facility-not-permitted',
    ),
    422: taskProblem(
      'The Idempotency-Key was used with another request.',
      '/Schedules',
      'idempotency-key-reused',
    ),
  },
};

export const LIST_SCHEDULES: OperationDocs = {
  ...{ id: 'listSchedules', tag: TAG, summary: 'List schedules' },
  description: 'In the order of their creation.',
  query: {
    ...FACILITY_QUERY,
    status: { description: 'Only schedules in this state.', example: 'Active' },
    ...PAGE_QUERY_DOCS,
  },
  answers: {
    200: jsonAnswer('One page.', schedulePage, {
      last: { summary: 'The last page', value: { schedules: [WEEKLY_ROUND], nextPageKey: null } },
    }),
    400: invalidField('/Schedules', 'pageSize', 'must be an integer from 1 to 1000'),
    403: taskProblem(
      'The token or its facilities do not allow this.',
      '/Schedules',
      'facility-not-permitted',
    ),
  },
};

export const GET_SCHEDULE: OperationDocs = {
  ...{ id: 'getSchedule', tag: TAG, summary: 'Get one schedule' },
  path: { id: { description: 'The schedule.', example: ID } },
  answers: {
    200: jsonAnswer('The schedule.', schedule, { one: { summary: 'A weekly round', value: WEEKLY_ROUND } }),
    400: invalidField('/Schedules/1', 'id', 'Invalid GUID'),
    403: taskProblem(
      'The token or its facilities do not allow this.',
      `/Schedules/${ID}`,
      'facility-not-permitted',
    ),
    404: taskProblem('There is no such schedule.', `/Schedules/${ID}`, 'schedule-not-found'),
  },
};
