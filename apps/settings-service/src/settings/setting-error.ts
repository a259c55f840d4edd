import type { WriteRequest } from './write-request';

/** Reasons for which the state of a setting, or of the service, does not allow a request. */
export type SettingErrorReason =
  | 'setting-not-found'
  | 'history-entry-not-found'
  | 'precondition-failed'
  | 'idempotency-key-reused'
  | 'restore-too-large'
  | 'instant-in-future'
  | 'instant-not-settled'
  | 'too-many-large-reads'
  | 'too-many-restorations'
  | 'restorations-busy'
  | 'setting-busy'
  | 'too-much-written'
  | 'changes-expired'
  | 'changes-not-settled'
  | 'too-many-watchers';

/** The refused write. In a request with many writes, the response names its index. */
type RefusedWrite = Pick<WriteRequest, 'key' | 'trail'>;

/** The state of the setting, or an earlier request, does not allow the request. */
export class SettingError extends Error {
  override readonly name = 'SettingError';

  readonly write: RefusedWrite | undefined;

  constructor(
    readonly reason: SettingErrorReason,
    { write, ...options }: ErrorOptions & { write?: RefusedWrite } = {},
  ) {
    super(reason, options);
    this.write = write;
  }
}
