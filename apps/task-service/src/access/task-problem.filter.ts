import { Catch } from '@nestjs/common';
import {
  BusUnavailableError,
  MessageReturnedError,
  PublishTimeoutError,
  RequestFaultedError,
  RequestTimeoutError,
} from '@platform/messaging';
import { ProblemDetailsFilter, problems } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { TaskError } from './task-error';
import type { TaskErrorReason } from './task-error';

const TASK_PROBLEMS = {
  'schedule-not-found': { status: 404, detail: 'There is no schedule with this identifier.' },
  'instance-not-found': { status: 404, detail: 'There is no task instance with this identifier.' },
  'trigger-not-found': { status: 404, detail: 'The facility has no recurring generation.' },
  'facility-not-permitted': { status: 403, detail: 'The facility is not among those of the caller.' },
  'instance-not-completable': {
    status: 409,
    detail: 'The task instance is cancelled and cannot be completed.',
  },
  'completed-in-the-future': { status: 400, detail: 'completedAt must not be in the future.' },
  'idempotency-key-invalid': {
    status: 400,
    detail: 'Idempotency-Key must be 1 to 200 printable ASCII characters.',
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

/** Answers this service's own errors; the libraries' errors have their answers already. */
@Catch()
export class TaskProblemFilter extends ProblemDetailsFilter {
  protected override toProblem(error: unknown): Problem | null {
    if (error instanceof TaskError) return TASK_PROBLEMS[error.reason];
    return busProblem(error) ?? super.toProblem(error);
  }
}

/** What a caller who waits for an answer over the bus hears when there is none. */
function busProblem(error: unknown): Problem | null {
  if (error instanceof RequestTimeoutError)
    return problems.gatewayTimeout('No answer came over the bus in time.').problem;
  if (error instanceof RequestFaultedError)
    return problems.badGateway('The request failed on the other side of the bus.').problem;
  const isDown =
    error instanceof BusUnavailableError ||
    error instanceof PublishTimeoutError ||
    error instanceof MessageReturnedError;
  return isDown
    ? problems.serviceUnavailable('The message broker cannot be reached right now.').problem
    : null;
}
