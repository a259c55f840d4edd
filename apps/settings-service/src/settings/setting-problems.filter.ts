import { Catch } from '@nestjs/common';
import { ProblemDetailsFilter } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { JsonSyntaxError } from './json-scanner';
import { SETTING_PROBLEMS, SettingError } from './setting-errors';
import { InvalidSettingValueError } from './setting-value';

/** Answers this service's own errors; everything else as in every service. */
@Catch()
export class SettingProblemsFilter extends ProblemDetailsFilter {
  protected override toProblem(error: unknown): Problem | null {
    if (error instanceof SettingError) return SETTING_PROBLEMS[error.reason];
    if (error instanceof InvalidSettingValueError || error instanceof JsonSyntaxError)
      return {
        status: 400,
        title: 'Invalid setting value',
        detail: 'The body does not hold a setting value that can be stored.',
        errors: { settingValue: [error.message] },
      };
    return super.toProblem(error);
  }
}
