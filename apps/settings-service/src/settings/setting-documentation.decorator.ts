import { applyDecorators } from '@nestjs/common';
import {
  ApiHeader,
  ApiHeaders,
  ApiOkResponse,
  ApiParam,
  ApiQuery,
  ApiResponse,
  ProblemResponse,
} from '@platform/open-api';
import { MAX_NAME_CODE_POINTS, SETTING_NAME_RULE } from '@platform/setting-names';
import { BAD_NAME } from './setting-request';
import { HEADERS, INVOICE_DAY, PlatformSettingDto, READ_HEADERS } from './setting.dto';

// Decorators that document what the routes of settings have in common. They check nothing.

function nameInPath(name: string, what: string, example: string): MethodDecorator {
  return ApiParam({
    name,
    description: `${what}, in any letter case: 1 to ${String(MAX_NAME_CODE_POINTS)} code points, not only blank, no control characters, not "." or "..".`,
    schema: { type: 'string', minLength: 1, maxLength: MAX_NAME_CODE_POINTS, example },
  });
}

export const SubsystemPath = (): MethodDecorator => nameInPath('subsystemName', 'The subsystem', 'billing');

export const SettingPath = (): MethodDecorator =>
  applyDecorators(SubsystemPath(), nameInPath('settingName', 'The setting', 'invoice-day'));

const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  description:
    '1 to 255 visible ASCII characters. A repeated write is done once and gets the first response. It must repeat operation, value and conditions.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
  example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
};

/** Documents only the header Idempotency-Key. */
export const IdempotencyHeader = (): MethodDecorator => ApiHeader(IDEMPOTENCY_KEY_HEADER);

/** Documents the headers that every write takes. */
export const WriteConditions = (): MethodDecorator =>
  ApiHeaders([
    {
      name: 'If-Match',
      description: 'Write only if the setting has one of these ETags (`*`: any).',
      example: '"42"',
    },
    {
      name: 'If-None-Match',
      description: 'Write only if the setting has none of these ETags. `*`: only create.',
    },
    IDEMPOTENCY_KEY_HEADER,
  ]);

/** Documents the query parameter `at` of reads. */
export const AtInstant = (): MethodDecorator =>
  ApiQuery({
    name: 'at',
    required: false,
    description:
      'Reads the state at this instant: ISO 8601 with an offset, at most 5 s in the future. Needs the persona InternalPartner, like the history. \
Returns 503 if a running write may still belong to the instant after 5 s.',
    schema: { type: 'string', format: 'date-time', example: '2026-03-02T09:15:00Z' },
  });

/** Documents 400 of a route that takes names or a page. */
export const InvalidRequestResponse = (): MethodDecorator =>
  ProblemResponse(400, 'A name, a header or a query parameter is not valid; `errors` tells which.', {
    name: {
      summary: 'A name that no setting can have',
      detail: BAD_NAME,
      errors: { settingName: [SETTING_NAME_RULE] },
      instance: '/platform/v1/subsystems/billing/settings/%07',
    },
  });

/** Documents what all reads have in common: If-None-Match, 304 and 400. */
export function ReadResponses(): MethodDecorator {
  return applyDecorators(
    ApiHeader({
      name: 'If-None-Match',
      description: 'ETags that the reader has. Returns 304 if one of them is current.',
      example: '"42"',
    }),
    ApiResponse({
      status: 304,
      description: 'The reader already has the current version.',
      headers: READ_HEADERS,
    }),
    InvalidRequestResponse(),
  );
}

/** Documents the response to every successful write. */
export const WrittenResponse = (): MethodDecorator =>
  ApiOkResponse({
    description: 'The setting as it was written.',
    type: PlatformSettingDto.Output,
    examples: { written: { summary: 'The setting', value: INVOICE_DAY } },
    headers: HEADERS.etag,
  });
