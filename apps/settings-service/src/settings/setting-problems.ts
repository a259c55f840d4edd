import type { Problem } from '@platform/service-defaults';
import type { SettingError, SettingErrorReason } from './setting-error';

/**
 * The response for every reason of a SettingError. The `type` lets a client tell a missing setting from a
 * wrong URL.
 */
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
  'restore-too-large': {
    status: 422,
    type: 'urn:platform:problem:restore-too-large',
    title: 'Too much to restore',
    detail:
      'More than 10,000 settings or 256 MiB differ, or the subsystem has had more than 200,000 names: nothing was changed. An operator restores it with `settings:admin restore`.',
  },
  'instant-in-future': {
    status: 400,
    type: 'urn:platform:problem:instant-in-future',
    title: 'Instant in the future',
    detail: 'The instant is in the future, so its values are not known yet.',
  },
  'instant-not-settled': {
    status: 503,
    type: 'urn:platform:problem:instant-not-settled',
    title: 'Instant not settled',
    detail:
      'A write that is still under way may belong to this instant. Try again, or ask for an earlier one.',
    headers: { 'Retry-After': '1' },
  },
  'too-many-large-reads': {
    status: 503,
    type: 'urn:platform:problem:too-many-large-reads',
    title: 'Too many large reads',
    detail: 'Too many responses of more than 512 KiB are being built. Try again, or request less.',
    headers: { 'Retry-After': '1' },
  },
  'too-many-restorations': {
    status: 429,
    type: 'urn:platform:problem:too-many-restorations',
    title: 'Too many restorations',
    detail: 'You already have a restoration or a dry run under way, and others waiting. Try again later.',
    headers: { 'Retry-After': '5' },
  },
  'restorations-busy': {
    status: 503,
    type: 'urn:platform:problem:restorations-busy',
    title: 'Restorations busy',
    detail: 'Other restorations are under way. Try again later.',
    headers: { 'Retry-After': '5' },
  },
  'setting-busy': {
    status: 503,
    type: 'urn:platform:problem:setting-busy',
    title: 'Setting busy',
    detail: 'Another change has locked a setting for too long. Nothing was written. Try again.',
    headers: { 'Retry-After': '1' },
  },
  'too-much-written': {
    status: 429,
    type: 'urn:platform:problem:too-much-written',
    title: 'Too much written',
    detail: 'You have written more history than one caller may in an hour. Try again later.',
    headers: { 'Retry-After': '60' },
  },
  'changes-expired': {
    status: 410,
    type: 'urn:platform:problem:changes-expired',
    title: 'Changes expired',
    detail:
      'The changes since `after` are no longer available. Start over: request the changes without `after`, then read the settings again.',
  },
  'changes-not-settled': {
    status: 503,
    type: 'urn:platform:problem:changes-not-settled',
    title: 'Changes not settled',
    detail:
      'A transaction that was already writing settings at the first request for changes has not ended yet. Try again.',
    headers: { 'Retry-After': '1' },
  },
  'too-many-watchers': {
    status: 503,
    type: 'urn:platform:problem:too-many-watchers',
    title: 'Too many watchers',
    detail: 'Too many requests wait for changes here. Try again, or use waitSeconds=0.',
    headers: { 'Retry-After': '1' },
  },
} as const satisfies Record<SettingErrorReason, Problem>;

/** Returns the response for an error. For one of many writes, `errors` names the write. */
export function settingProblem({ reason, write }: SettingError): Problem {
  const problem = SETTING_PROBLEMS[reason];
  const { key, trail } = write ?? {};
  if (key === undefined || trail?.part === undefined) return problem;
  const names = `${key.subsystem.name} / ${key.setting.name}`;
  return { ...problem, errors: { [`writes.${String(trail.part)}`]: [`${names}: ${problem.detail}`] } };
}
