import type { Problem } from '@platform/service-defaults';

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

/** The response to each reason. The types let a client tell a setting that is not there from a wrong address. */
export const SETTING_PROBLEMS = {
  'setting-not-found': {
    status: 404,
    type: 'urn:platform:problem:setting-not-found',
    title: 'Setting not found',
    detail: 'The setting does not exist.',
  },
  'history-entry-not-found': {
    status: 404,
    type: 'urn:platform:problem:history-entry-not-found',
    title: 'History entry not found',
    detail: 'The history of this setting has no such entry.',
  },
  'precondition-failed': {
    status: 412,
    type: 'urn:platform:problem:setting-changed',
    title: 'Precondition failed',
    detail: 'The setting is not in the state that If-Match or If-None-Match asks for.',
  },
  'idempotency-key-reused': {
    status: 422,
    type: 'urn:platform:problem:idempotency-key-reused',
    title: 'Idempotency key reused',
    detail: 'The Idempotency-Key belongs to another request.',
  },
} as const satisfies Record<SettingErrorReason, Problem>;
