import { Catch, applyDecorators } from '@nestjs/common';
import { ProblemResponse, RESPONSE_HEADERS } from '@platform/open-api';
import { ProblemDetailsFilter } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { JsonSyntaxError } from './json-scanner';
import { InvalidSettingValueError } from './setting-value';
import type { WriteRequest } from './write-request';

/**
 * Every reason for which the state of a setting refuses a request, with its response. The `type` lets a
 * client tell a missing setting from a wrong URL.
 */
const SETTING_PROBLEMS = {
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
} as const satisfies Record<string, Problem>;

type SettingErrorReason = keyof typeof SETTING_PROBLEMS;

/** The refused write. In a request with many writes, the response names its index. */
type RefusedWrite = Pick<WriteRequest, 'key' | 'trail'>;

/** The state of the setting, or an earlier request, does not allow the request. */
export class SettingError extends Error {
  override readonly name = 'SettingError';

  private readonly write: RefusedWrite | undefined;

  constructor(
    readonly reason: SettingErrorReason,
    { write, ...options }: ErrorOptions & { write?: RefusedWrite } = {},
  ) {
    super(reason, options);
    this.write = write;
  }

  get problem(): Problem {
    const problem = SETTING_PROBLEMS[this.reason];
    const { key, trail } = this.write ?? {};
    if (key === undefined || trail?.part === undefined) return problem;
    const names = `${key.subsystem.name} / ${key.setting.name}`;
    return { ...problem, errors: { [`writes.${String(trail.part)}`]: [`${names}: ${problem.detail}`] } };
  }
}

const INVALID_VALUE = {
  status: 400,
  title: 'Invalid setting value',
  detail: 'The body does not hold a setting value that can be stored.',
};

/** Turns this service's own errors into problem responses. The base class handles all others. */
@Catch()
export class SettingProblemsFilter extends ProblemDetailsFilter {
  protected override toProblem(error: unknown): Problem | null {
    if (error instanceof SettingError) return error.problem;
    if (error instanceof InvalidSettingValueError || error instanceof JsonSyntaxError)
      return { ...INVALID_VALUE, errors: { settingValue: [error.message] } };
    return super.toProblem(error);
  }
}

const instance = '/platform/v1/subsystems/billing/settings/invoice-day';

/** Documents the response that refuses a request for this reason. */
export function SettingProblemResponse(description: string, reason: SettingErrorReason): MethodDecorator {
  const { status, ...problem } = SETTING_PROBLEMS[reason];
  const example = { [reason]: { summary: problem.title, ...problem, instance } };
  const headers = 'headers' in problem ? RESPONSE_HEADERS.retryAfter : {};
  return ProblemResponse(status, description, example, headers);
}

/** Documents 412, 422, 429 and 503 of every write. */
export const WriteRefusals = (): MethodDecorator =>
  applyDecorators(
    SettingProblemResponse(
      'A condition does not hold: nothing was written. For many writes, `errors` names the first one whose condition failed.',
      'precondition-failed',
    ),
    SettingProblemResponse(
      'The `Idempotency-Key` was used by a request with another operation, setting, value or condition.',
      'idempotency-key-reused',
    ),
    SettingProblemResponse('The caller has used up its hourly allowance of history.', 'too-much-written'),
    SettingProblemResponse(
      'The database cannot be reached, or another change, a restoration for example, holds the setting.',
      'setting-busy',
    ),
  );

/** Documents 422, 429 and 503 of a restoration. */
export const RestorationRefusals = (): MethodDecorator =>
  applyDecorators(
    SettingProblemResponse(
      'More than 10,000 settings or 256 MiB would change, or the subsystem has had more than 200,000 names: nothing was changed.',
      'restore-too-large',
    ),
    SettingProblemResponse('The caller has used up its hourly allowance of history.', 'too-much-written'),
    SettingProblemResponse('The caller has other restorations under way.', 'too-many-restorations'),
    SettingProblemResponse(
      'The database cannot be reached, or other callers have restorations under way.',
      'restorations-busy',
    ),
    SettingProblemResponse('Another change holds a setting of the subsystem.', 'setting-busy'),
  );

/** Documents 400 of a body without a value. */
export function InvalidValueResponse(): MethodDecorator {
  const { status, ...problem } = INVALID_VALUE;
  const errors = { settingValue: ['settingValue is required'] };
  return ProblemResponse(status, 'A name, a header or the value is not valid; `errors` tells which.', {
    value: { summary: 'No value', ...problem, errors, instance },
  });
}
