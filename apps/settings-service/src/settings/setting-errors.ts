/** Why a request on a setting was refused by its state. */
export type SettingErrorReason =
  'setting-not-found' | 'history-entry-not-found' | 'precondition-failed' | 'idempotency-key-reused';

/** The state of the setting, or of an earlier request, does not allow what was asked. */
export class SettingError extends Error {
  override readonly name = 'SettingError';

  constructor(
    readonly reason: SettingErrorReason,
    options?: ErrorOptions,
  ) {
    super(reason, options);
  }
}
