import type { Problem } from '@platform/service-defaults';

/** Every reason for which the service refuses a request, with the response that says so. */
export const TASK_PROBLEMS = {
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
} as const satisfies Record<string, Problem>;

export type TaskErrorReason = keyof typeof TASK_PROBLEMS;

/** A request that the service refuses. */
export class TaskError extends Error {
  override readonly name = 'TaskError';

  constructor(
    readonly reason: TaskErrorReason,
    options?: ErrorOptions,
  ) {
    super(reason, options);
  }
}
