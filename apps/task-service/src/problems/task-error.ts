/** Reasons for which the service rejects a request. */
export type TaskErrorReason =
  | 'completed-in-the-future'
  | 'completed-before-creation'
  | 'schedule-too-frequent'
  | 'schedule-limit-reached'
  | 'instance-limit-reached'
  | 'schedule-not-evaluable'
  | 'schedule-ends-before-start'
  | 'calendar-unknown'
  | 'instant-out-of-range'
  | 'schedule-not-found'
  | 'instance-not-found'
  | 'calendar-not-found'
  | 'trigger-not-found'
  | 'facility-not-permitted'
  | 'instance-not-completable'
  | 'schedule-ended'
  | 'span-too-long'
  | 'schedule-changed-too-often'
  | 'schedules-created-too-often'
  | 'too-many-changes-at-once'
  | 'too-many-reads-at-once'
  | 'reads-busy'
  | 'calendar-still-named'
  | 'outcome-unknown'
  | 'changes-busy'
  | 'schedule-removed'
  | 'schedule-changed'
  | 'instance-not-cancellable'
  | 'calendar-changed'
  | 'calendar-in-use'
  | 'idempotency-key-invalid'
  | 'idempotency-key-reused'
  | 'identity-unavailable';

/** The state of the service, or of what it stores, does not allow a request. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  /** Seconds after which the request may succeed; null if unknown. */
  readonly retryAfterSeconds: number | null;

  constructor(
    readonly reason: TaskErrorReason,
    { retryAfterSeconds, ...options }: ErrorOptions & { retryAfterSeconds?: number } = {},
  ) {
    super(reason, options);
    this.retryAfterSeconds = retryAfterSeconds ?? null;
  }
}
