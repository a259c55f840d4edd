import { NEXT_PAGE_KEY_DESCRIPTION, PAGE_QUERY_DOCS, jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import {
  FACILITY_QUERY,
  cron,
  facilityId,
  instant,
  invalidField,
  taskProblem,
  timeZone,
} from '../fields/answer-fields';
import type { TriggerBody } from './trigger.dto';
import { JOB_NAME, TRIGGER_GROUP, TRIGGER_STATES } from './trigger.entity';

const TAG = 'Triggers';

const trigger = z
  .object({
    triggerName: z.string().meta({ description: 'Derived from the facility.' }),
    triggerGroup: z.string(),
    jobName: z.string(),
    facilityId,
    schedule: cron,
    timeZone,
    state: z.enum(TRIGGER_STATES).meta({
      description: 'WAITING fires when due, PAUSED never does, ERROR cannot be evaluated any more.',
    }),
    nextFireAtUtc: instant('When it fires next.'),
    previousFireAtUtc: instant('When it fired last; null before the first time.').nullable(),
  })
  .meta({ id: 'Trigger', description: "A facility's trigger." }) satisfies z.ZodType<TriggerBody>;

const triggerPage = z
  .object({
    triggers: z.array(trigger),
    nextPageKey: z.string().nullable().meta({ description: NEXT_PAGE_KEY_DESCRIPTION }),
  })
  .meta({ id: 'TriggerPage' });

const WAITING: TriggerBody = {
  triggerName: 'facility-501',
  triggerGroup: TRIGGER_GROUP,
  jobName: JOB_NAME,
  facilityId: 501,
  schedule: '0 2 * * *',
  timeZone: 'Europe/Berlin',
  state: 'WAITING',
  nextFireAtUtc: '2026-03-03T01:00:00.000Z',
  previousFireAtUtc: '2026-03-02T01:00:00.000Z',
};

export const LIST_TRIGGERS: OperationDocs = {
  ...{ id: 'listTriggers', tag: TAG, summary: 'List triggers' },
  description: 'In the order of their facilities.',
  query: { ...FACILITY_QUERY, ...PAGE_QUERY_DOCS },
  answers: {
    200: jsonAnswer('One page.', triggerPage, {
      last: { summary: 'The last page', value: { triggers: [WAITING], nextPageKey: null } },
    }),
    400: invalidField('/Triggers', 'pageSize', 'must be an integer from 1 to 1000'),
    403: taskProblem('The token or its facilities do not allow this.', '/Triggers', 'facility-not-permitted'),
  },
};

function command(
  id: string,
  summary: string,
  description: string,
  state: TriggerBody['state'],
): OperationDocs {
  const path = `/Triggers/501/commands/${id === 'pauseTrigger' ? 'pause' : 'resume'}`;
  return {
    ...{ id, tag: TAG, summary, description },
    path: {
      facilityId: { description: 'The facility.', schema: { type: 'integer', minimum: 1 }, example: 501 },
    },
    answers: {
      200: jsonAnswer('Done, now or before.', trigger, {
        done: { summary: 'The trigger', value: { ...WAITING, state } },
      }),
      400: invalidField('/Triggers/x/commands/pause', 'facilityId', 'must be a positive integer'),
      404: taskProblem('The facility has no trigger.', path, 'trigger-not-found'),
    },
  };
}

export const PAUSE_TRIGGER = command(
  'pauseTrigger',
  'Pause a trigger',
  'Nothing fires until it is resumed.',
  'PAUSED',
);
export const RESUME_TRIGGER = command(
  'resumeTrigger',
  'Resume a trigger',
  'What was due in between is treated as a misfire is: up to 1.5 hours late, every occurrence fires; later, the latest one.',
  'WAITING',
);
