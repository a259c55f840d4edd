import { Catch, applyDecorators } from '@nestjs/common';
import { ProblemResponse, RESPONSE_HEADERS } from '@platform/open-api';
import { ProblemDetailsFilter } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { JsonSyntaxError } from './json-scanner';
import { SettingError, type SettingErrorReason } from './setting-error';
import { SETTING_PROBLEMS, settingProblem } from './setting-problems';
import { InvalidSettingValueError } from './setting-value';

const INVALID_VALUE = {
  status: 400,
  title: 'Invalid setting value',
  detail: 'The body does not hold a setting value that can be stored.',
};

/** Turns this service's own errors into problem responses. The base class handles all others. */
@Catch()
export class SettingProblemsFilter extends ProblemDetailsFilter {
  protected override toProblem(error: unknown): Problem | null {
    if (error instanceof SettingError) return settingProblem(error);
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
