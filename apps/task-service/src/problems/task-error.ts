/** Why the service refuses a request; each reason has one answer in `task-problems.ts`. */
export type TaskErrorReason =
  | 'schedule-not-found'
  | 'instance-not-found'
  | 'trigger-not-found'
  | 'facility-not-permitted'
  | 'instance-not-completable'
  | 'completed-in-the-future'
  | 'idempotency-key-invalid'
  | 'idempotency-key-reused'
  | 'identity-unavailable';

/** A request that the service refuses, with a closed reason. */
export class TaskError extends Error {
  override readonly name = 'TaskError';

  constructor(
    readonly reason: TaskErrorReason,
    options?: ErrorOptions,
  ) {
    super(reason, options);
  }
}
