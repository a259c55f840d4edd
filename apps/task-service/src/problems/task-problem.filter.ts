import { Catch } from '@nestjs/common';
import {
  BusUnavailableError,
  MessageReturnedError,
  PublishTimeoutError,
  RequestFaultedError,
  RequestTimeoutError,
} from '@platform/messaging';
import { ProblemResponse, RESPONSE_HEADERS } from '@platform/open-api';
import { ProblemDetailsFilter, problems } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { TaskError, type TaskErrorReason } from './task-error';

/** Limits that a well-formed request may exceed: status 422, each with its own type. */
const LIMITS = {
  'completed-in-the-future': 'completedAt must not be in the future.',
  'completed-before-creation': 'completedAt must not be more than 366 days before the instance was made.',
  'schedule-too-frequent': 'The schedule occurs more often than your limit allows.',
  'schedule-limit-reached': 'The facility has reached its limit of active schedules.',
  'instance-limit-reached': 'The facility would exceed its limit of pending task instances.',
  'schedule-not-evaluable':
    'The schedule, its time zone or its dates cannot be evaluated by this release; `error` says which. Give another value.',
  'schedule-ends-before-start': 'endDate must not be before startDate.',
  'calendar-unknown': 'There is no calendar with the identifier calendarId.',
  'instant-out-of-range': 'Instants must lie between the years 2000 and 2200.',
} as const;
const limitProblem = ([name, detail]: [string, string]) => [
  name,
  { status: 422, type: `urn:platform:problem:${name}`, detail },
];

const SPAN_TOO_LONG = { to: ['must be at most ten years after from'] };
const END_IN_THE_PAST = { endDate: ['must not be in the past'] };

/** The response for every reason of a TaskError. */
const TASK_PROBLEMS = {
  ...(Object.fromEntries(Object.entries(LIMITS).map(limitProblem)) as Record<
    keyof typeof LIMITS,
    { status: 422; type: string; detail: string }
  >),
  'schedule-not-found': { status: 404, detail: 'There is no schedule with this identifier.' },
  'instance-not-found': { status: 404, detail: 'There is no task instance with this identifier.' },
  'calendar-not-found': { status: 404, detail: 'There is no calendar with this identifier.' },
  'trigger-not-found': { status: 404, detail: 'The facility has no recurring generation.' },
  'facility-not-permitted': { status: 403, detail: 'The facility is not among those of the caller.' },
  'instance-not-completable': {
    status: 409,
    detail: 'The task instance is cancelled and cannot be completed.',
  },
  'schedule-ended': {
    status: 400,
    detail: 'The request is not valid.',
    errors: END_IN_THE_PAST,
  },
  'span-too-long': {
    status: 400,
    detail: 'The request is not valid.',
    errors: SPAN_TOO_LONG,
  },
  'schedule-changed-too-often': {
    status: 429,
    type: 'urn:platform:problem:schedule-changed-too-often',
    detail: 'The schedule has reached its limit of changes per hour.',
  },
  'schedules-created-too-often': {
    status: 429,
    type: 'urn:platform:problem:schedules-created-too-often',
    detail: 'The facility has reached its limit of new schedules per hour.',
  },
  'too-many-changes-at-once': {
    status: 429,
    type: 'urn:platform:problem:too-many-changes-at-once',
    detail: 'Too many changes of the same resource, or by the same caller, are under way.',
  },
  'too-many-reads-at-once': {
    status: 429,
    type: 'urn:platform:problem:too-many-reads-at-once',
    detail: 'Too many reads of the same caller are under way.',
  },
  'reads-busy': { status: 503, detail: 'Too many reads are under way.' },
  'calendar-still-named': {
    status: 503,
    type: 'urn:platform:problem:calendar-still-named',
    detail:
      'Many removed schedules name the calendar. Some have been updated; repeat the request to continue.',
  },
  'outcome-unknown': {
    status: 503,
    type: 'urn:platform:problem:outcome-unknown',
    detail:
      'The database connection was lost while the change was being stored, and another client has changed the same resource since. The change may have been committed: read the resource before you repeat it.',
  },
  'changes-busy': { status: 503, detail: 'Too many changes and creations are under way. Try again.' },
  'schedule-removed': { status: 409, detail: 'The schedule is removed, for good.' },
  'schedule-changed': { status: 412, detail: 'The schedule is not in the state that If-Match asks for.' },
  'instance-not-cancellable': {
    status: 409,
    detail: 'The task instance is completed and cannot be cancelled.',
  },
  'calendar-changed': {
    status: 412,
    detail: 'The calendar is not in the state that If-Match or If-None-Match asks for.',
  },
  'calendar-in-use': { status: 409, detail: 'A schedule uses the calendar.' },
  'idempotency-key-invalid': {
    status: 400,
    detail: 'Idempotency-Key must be 1 to 200 visible ASCII characters.',
  },
  'idempotency-key-reused': {
    status: 422,
    detail: 'The Idempotency-Key was used before with another request.',
  },
  'identity-unavailable': {
    status: 503,
    detail: 'The facilities of the caller cannot be read right now.',
    headers: { 'Retry-After': '1' },
  },
} as const satisfies Record<TaskErrorReason, Problem>;

// Details of the problems for a request over the bus that failed.
export const NO_REPLY = 'No reply came over the bus in time.';
export const FAULTED = 'The request failed on the other side of the bus.';
export const BUS_DOWN = 'The message broker cannot be reached right now.';

/** Maps this service's errors to problems. The base class maps those of the libraries. */
@Catch()
export class TaskProblemFilter extends ProblemDetailsFilter {
  protected override toProblem(error: unknown): Problem | null {
    if (error instanceof TaskError) return taskProblem(error);
    return busProblem(error) ?? super.toProblem(error);
  }
}

function taskProblem({ reason, retryAfterSeconds }: TaskError): Problem {
  const problem: Problem = TASK_PROBLEMS[reason];
  if (retryAfterSeconds === null) return problem;
  return { ...problem, headers: { 'Retry-After': String(retryAfterSeconds) } };
}

/** Returns the problem of a request over the bus that failed; null for any other error. */
function busProblem(error: unknown): Problem | null {
  if (error instanceof RequestTimeoutError) return problems.gatewayTimeout(NO_REPLY).problem;
  if (error instanceof RequestFaultedError) return problems.badGateway(FAULTED).problem;
  const isDown =
    error instanceof BusUnavailableError ||
    error instanceof PublishTimeoutError ||
    error instanceof MessageReturnedError;
  return isDown ? problems.serviceUnavailable(BUS_DOWN).problem : null;
}

/** Description of the 400 response. */
const INVALID_REQUEST = 'The request is not valid; `errors` tells why.';

/**
 * Documents the response that rejects a request for these reasons, which all have the same status.
 * @param instance path of the example
 */
export function TaskProblemResponse(
  description: string,
  instance: string,
  ...reasons: readonly [TaskErrorReason, ...TaskErrorReason[]]
): MethodDecorator {
  const example = (reason: TaskErrorReason) => {
    const { detail, type }: Problem & { detail: string } = TASK_PROBLEMS[reason];
    return [reason, { summary: detail, type, detail, instance }] as const;
  };
  const { status } = TASK_PROBLEMS[reasons[0]];
  const headers = status === 429 || status === 503 ? RESPONSE_HEADERS.retryAfter : {};
  return ProblemResponse(status, description, Object.fromEntries(reasons.map(example)), headers);
}

/** Documents the 403 of a route that checks access to the facility. */
export const ForbiddenResponse = (instance: string): MethodDecorator =>
  TaskProblemResponse('The token or its facilities do not allow this.', instance, 'facility-not-permitted');

/** Documents the 400 for an invalid field. */
export const InvalidFieldResponse = (instance: string, field: string, message: string): MethodDecorator =>
  ProblemResponse(400, INVALID_REQUEST, {
    field: {
      summary: 'A field is not valid',
      detail: 'The request is not valid.',
      errors: { [field]: [message] },
      instance,
    },
  });
