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
import { TASK_PROBLEMS, TaskError } from './task-error';

/** Maps this service's own errors to problems; the libraries map theirs. */
@Catch()
export class TaskProblemFilter extends ProblemDetailsFilter {
  protected override toProblem(error: unknown): Problem | null {
    if (error instanceof TaskError) return TASK_PROBLEMS[error.reason];
    return busProblem(error) ?? super.toProblem(error);
  }
}

/** The problem for a caller whose request over the bus got no reply. */
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
