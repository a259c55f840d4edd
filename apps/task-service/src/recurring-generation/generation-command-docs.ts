import type {
  ScheduleRecurringTaskInstanceGenerationSucceeded,
  UnscheduleRecurringTaskInstanceGenerationSucceeded,
} from '@platform/contracts';
import {
  ANSWER_HEADERS,
  jsonAnswer,
  problemAnswer,
  problemBody,
  problemExample,
} from '@platform/service-defaults';
import type { AnswerDocs, OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import { cron, facilityId, instant, invalidField, timeZone } from '../fields/answer-fields';
import { TRIGGER_GROUP } from '../scheduler/trigger.entity';

const TAG = 'Recurring generation';
const SCHEDULE = '/commands/scheduleRecurringTaskInstanceGeneration';
const UNSCHEDULE = '/commands/unscheduleRecurringTaskInstanceGeneration';

const result = z.literal('Succeeded');

const scheduled = z
  .object({
    result,
    facilityId,
    scheduleName: z.string().meta({ description: 'Name of the trigger.' }),
    scheduleGroup: z.string(),
    schedule: cron,
    timeZone,
    nextFireTimeUtc: instant('When instances are generated next.'),
    replaced: z.boolean().meta({ description: 'The facility had a trigger before.' }),
  })
  .meta({ id: 'GenerationScheduled' }) satisfies z.ZodType<ScheduleRecurringTaskInstanceGenerationSucceeded>;

const unscheduled = z
  .object({ result, facilityId, removed: z.boolean().meta({ description: 'The facility had a trigger.' }) })
  .meta({
    id: 'GenerationUnscheduled',
  }) satisfies z.ZodType<UnscheduleRecurringTaskInstanceGenerationSucceeded>;

const refused = problemBody
  .extend({
    result: z.literal('Failed'),
    facilityId,
    code: z.string().meta({ description: 'Why, for programs.' }),
    reason: z.string().meta({ description: 'Why, for people.' }),
  })
  .meta({ id: 'GenerationRefused', description: 'The Failed answer of the consumer, as a problem.' });

/** Answers of both commands that come of the way over the bus. */
function busAnswers(instance: string): Record<number, AnswerDocs> {
  const reason = 'The time zone is not an IANA time zone.';
  const extensions = { result: 'Failed', facilityId: 501, code: 'InvalidTimeZone', reason };
  return {
    422: problemAnswer(
      'The request was answered with Failed.',
      { failed: problemExample('Refused', { status: 422, detail: reason, extensions }, instance) },
      { body: refused },
    ),
    502: problemAnswer('The consumer failed while it worked on the request.', {
      faulted: problemExample(
        'A fault',
        { status: 502, detail: 'The request failed on the other side of the bus.' },
        instance,
      ),
    }),
    503: problemAnswer(
      'The message broker is away, or tokens cannot be verified. Nothing was sent.',
      {
        broker: problemExample(
          'The broker is away',
          { status: 503, detail: 'The message broker cannot be reached right now.' },
          instance,
        ),
      },
      { headers: ANSWER_HEADERS.retryAfter },
    ),
    504: problemAnswer(
      'No answer came in time (30 s unless configured); the command may still be carried out.',
      {
        late: problemExample(
          'No answer',
          { status: 504, detail: 'No answer came over the bus in time.' },
          instance,
        ),
      },
    ),
  };
}

export const SCHEDULE_GENERATION: OperationDocs = {
  ...{
    id: 'scheduleRecurringTaskInstanceGeneration',
    tag: TAG,
    summary: 'Generate instances of a facility regularly',
  },
  description: 'Creates or replaces the trigger of the facility. May be repeated.',
  body: {
    examples: {
      defaults: { summary: 'Defaults of the service', value: { facilityId: 501 } },
      nightly: {
        summary: 'Every night at two',
        value: { facilityId: 501, schedule: '0 2 * * *', timeZone: 'Europe/Berlin' },
      },
    },
  },
  answers: {
    200: jsonAnswer('The facility has its trigger.', scheduled, {
      scheduled: {
        summary: 'Scheduled',
        value: {
          result: 'Succeeded',
          facilityId: 501,
          scheduleName: 'facility-501',
          scheduleGroup: TRIGGER_GROUP,
          schedule: '0 2 * * *',
          timeZone: 'Europe/Berlin',
          nextFireTimeUtc: '2026-03-03T01:00:00.000Z',
          replaced: false,
        },
      },
    }),
    400: invalidField(SCHEDULE, 'facilityId', 'Invalid input: expected number, received string'),
    ...busAnswers(SCHEDULE),
  },
};

export const UNSCHEDULE_GENERATION: OperationDocs = {
  ...{
    id: 'unscheduleRecurringTaskInstanceGeneration',
    tag: TAG,
    summary: 'End the regular generation of a facility',
  },
  description: 'Removes the trigger of the facility; instances that exist stay. May be repeated.',
  body: { examples: { one: { summary: 'One facility', value: { facilityId: 501 } } } },
  answers: {
    200: jsonAnswer('The facility has no trigger any more.', unscheduled, {
      removed: { summary: 'Removed', value: { result: 'Succeeded', facilityId: 501, removed: true } },
    }),
    400: invalidField(UNSCHEDULE, 'facilityId', 'Invalid input: expected number, received string'),
    ...busAnswers(UNSCHEDULE),
  },
};
