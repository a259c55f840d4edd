import { applyDecorators } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiHeader, ApiOperation, ApiParam, ApiResponse } from '@nestjs/swagger';
import { MAX_NAME_CODE_POINTS } from './setting-key';

type Schema = Record<string, unknown>;

const nullable = (schema: Schema): Schema => ({ oneOf: [schema, { type: 'null' }] });
const record = (properties: Record<string, Schema>): Schema => ({
  ...{ type: 'object', properties, required: Object.keys(properties) },
});
const page = (name: string, items: Schema): Schema =>
  record({ [name]: { type: 'array', items }, nextPageKey: nullable({ type: 'string' }) });

const anyValue: Schema = { description: 'Any JSON value but null, exactly as it was written.' };
const platformSetting = record({
  subsystemName: { type: 'string' },
  settingName: { type: 'string' },
  settingValue: anyValue,
});
const historyEntry = record({
  id: { type: 'integer' },
  operation: { enum: ['write', 'delete'] },
  settingValue: { description: 'The value written, or the one that was deleted.' },
  personId: nullable({ type: 'integer' }),
  userId: nullable({ type: 'integer' }),
  personName: nullable({ type: 'string' }),
  persona: { type: 'integer', description: 'Persona bits of the token.' },
  occurredAt: { type: 'string', format: 'date-time' },
  requestId: { type: 'string' },
});

const ANSWERS = {
  setting: platformSetting,
  value: anyValue,
  settings: page('settings', platformSetting),
  history: page('history', historyEntry),
} as const satisfies Record<string, Schema>;

const PROBLEMS = {
  304: 'The reader has this revision already.',
  400: 'The request is not valid; `errors` tells why.',
  404: 'It does not exist.',
  412: 'If-Match or If-None-Match does not hold.',
  413: 'The body is larger than 512 KiB.',
  415: 'The body is not uncompressed JSON in UTF-8.',
  422: 'The Idempotency-Key belongs to another request.',
} as const;

const HEADERS = {
  'If-Match': 'Go on only if the setting has one of these ETags.',
  'If-None-Match': 'Read: 304 if the setting has one of these ETags. Write: `*` creates only.',
  'Idempotency-Key':
    '1 to 255 visible ASCII characters: a repeated write gets the first answer and happens once.',
} as const;

/** What the OpenAPI document says of a route besides its path. */
export interface RouteDocumentation {
  readonly summary: string;
  readonly answers: keyof typeof ANSWERS;
  /** Names in the path. */
  readonly names?: readonly ('subsystemName' | 'settingName')[];
  readonly headers?: readonly (keyof typeof HEADERS)[];
  readonly takesValue?: boolean;
  /** Answers other than 200, 401, 403 and 503, which every route has. */
  readonly otherwise: readonly (keyof typeof PROBLEMS)[];
}

/** Describes a route in the OpenAPI document. */
export function Documented(route: RouteDocumentation): MethodDecorator {
  const body = { schema: record({ settingValue: anyValue }) } as Parameters<typeof ApiBody>[0];
  const always = { 401: 'No valid token.', 403: 'The persona is not sufficient.', 503: 'Try again later.' };
  const problems = {
    ...Object.fromEntries(route.otherwise.map((each) => [each, PROBLEMS[each]])),
    ...always,
  };
  return applyDecorators(
    ApiBearerAuth(),
    ApiOperation({ summary: route.summary }),
    ApiResponse({
      ...{ status: 200, description: 'Success.' },
      content: { 'application/json': { schema: ANSWERS[route.answers] } },
    }),
    ...Object.entries(problems).map(([status, description]) =>
      ApiResponse({ status: Number(status), description }),
    ),
    ...(route.names ?? []).map((name) =>
      ApiParam({
        name,
        description: `1 to ${String(MAX_NAME_CODE_POINTS)} code points, in any letter case.`,
      }),
    ),
    ...(route.headers ?? []).map((name) => ApiHeader({ name, description: HEADERS[name], required: false })),
    ...(route.takesValue === true ? [ApiBody(body)] : []),
  );
}
