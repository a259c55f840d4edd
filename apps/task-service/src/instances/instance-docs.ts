import { NEXT_PAGE_KEY_DESCRIPTION, PAGE_QUERY_DOCS, jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import {
  FACILITY_QUERY,
  IVY,
  actor,
  facilityId,
  identifier,
  instant,
  invalidField,
  taskProblem,
} from '../fields/answer-fields';
import { completeInstanceBody } from './instance.dto';
import type { InstanceBody } from './instance.dto';
import { INSTANCE_STATUSES } from './instance.entity';

const TAG = 'Instances';
const ID = '0198f2c5-03b7-4e0a-8f64-2d9c5a7e1b30';
const COMPLETE = `/Instances/${ID}/commands/complete`;

const instance = z
  .object({
    taskInstanceId: identifier('The task instance.'),
    scheduleId: identifier('The schedule that it was generated from.'),
    facilityId,
    name: z.string().meta({ description: 'The name that the schedule had at that time.' }),
    dueAtUtc: instant('When it is due.'),
    status: z.enum(INSTANCE_STATUSES),
    completedAtUtc: instant('When it was completed.').nullable(),
    completedBy: actor.nullable(),
    notes: z.string().nullable(),
  })
  .meta({ id: 'TaskInstance', description: 'One task at one time.' }) satisfies z.ZodType<InstanceBody>;

const instancePage = z
  .object({
    instances: z.array(instance),
    nextPageKey: z.string().nullable().meta({ description: NEXT_PAGE_KEY_DESCRIPTION }),
  })
  .meta({ id: 'TaskInstancePage' });

const PENDING: InstanceBody = {
  taskInstanceId: ID,
  scheduleId: '0198f2c4-6a1e-4c3b-9d52-7b1f0e6a2c11',
  facilityId: 501,
  name: 'Weekly round',
  dueAtUtc: '2026-03-09T08:00:00.000Z',
  status: 'Pending',
  completedAtUtc: null,
  completedBy: null,
  notes: null,
};
const COMPLETED: InstanceBody = {
  ...PENDING,
  status: 'Completed',
  completedAtUtc: '2026-03-09T08:41:30.000Z',
  completedBy: IVY,
  notes: 'Filter replaced.',
};

const INSTANCE_PATH = { id: { description: 'The task instance.', example: ID } };
const NOT_PERMITTED = 'The token or its facilities do not allow this.';

export const COMPLETE_INSTANCE: OperationDocs = {
  ...{ id: 'completeInstance', tag: TAG, summary: 'Complete a task instance' },
  description:
    'TaskInstanceCompletedEvent is published once. Completing again changes nothing and answers the same.',
  path: INSTANCE_PATH,
  body: {
    schema: completeInstanceBody.meta({ id: 'CompleteInstanceRequest' }),
    required: false,
    examples: {
      now: { summary: 'Completed now', value: {} },
      before: {
        summary: 'Completed earlier, with a note',
        value: { completedAt: '2026-03-09T09:41:30+01:00', notes: 'Filter replaced.' },
      },
    },
  },
  answers: {
    200: jsonAnswer('Completed, now or before.', instance, {
      completed: { summary: 'Completed', value: COMPLETED },
    }),
    400: taskProblem('The request is not valid; `errors` tells why.', COMPLETE, 'completed-in-the-future'),
    403: taskProblem(NOT_PERMITTED, COMPLETE, 'facility-not-permitted'),
    404: taskProblem('There is no such task instance.', COMPLETE, 'instance-not-found'),
    409: taskProblem('It is cancelled.', COMPLETE, 'instance-not-completable'),
  },
};

export const LIST_INSTANCES: OperationDocs = {
  ...{ id: 'listInstances', tag: TAG, summary: 'List task instances' },
  description: 'In the order in which they are due.',
  query: {
    ...FACILITY_QUERY,
    scheduleId: { description: 'Only those of this schedule.' },
    status: { description: 'Only those in this state.', example: 'Pending' },
    dueFrom: { description: 'Only those due at this instant or later.', example: '2026-03-09T00:00:00Z' },
    dueTo: { description: 'Only those due before this instant.', example: '2026-03-16T00:00:00Z' },
    ...PAGE_QUERY_DOCS,
  },
  answers: {
    200: jsonAnswer('One page.', instancePage, {
      last: { summary: 'The last page', value: { instances: [PENDING, COMPLETED], nextPageKey: null } },
    }),
    400: invalidField('/Instances', 'dueFrom', 'Invalid ISO datetime'),
    403: taskProblem(NOT_PERMITTED, '/Instances', 'facility-not-permitted'),
  },
};

export const GET_INSTANCE: OperationDocs = {
  ...{ id: 'getInstance', tag: TAG, summary: 'Get one task instance' },
  path: INSTANCE_PATH,
  answers: {
    200: jsonAnswer('The task instance.', instance, {
      pending: { summary: 'Not done yet', value: PENDING },
      completed: { summary: 'Done', value: COMPLETED },
    }),
    400: invalidField('/Instances/1', 'id', 'Invalid GUID'),
    403: taskProblem(NOT_PERMITTED, `/Instances/${ID}`, 'facility-not-permitted'),
    404: taskProblem('There is no such task instance.', `/Instances/${ID}`, 'instance-not-found'),
  },
};
