import { PAGE_QUERY_DOCS, jsonAnswer, problemAnswer, problemExample } from '@platform/service-defaults';
import type { AnswerDocs, HeaderDocs, OperationDocs, ParameterDocs } from '@platform/service-defaults';
import { MAX_NAME_CODE_POINTS } from './setting-key';
import { SETTING_PROBLEMS } from './setting-errors';
import type { SettingErrorReason } from './setting-errors';
import { platformSetting, putPlatformSettingRequest, settingValue, settingsPage } from './setting.dto';

const PATH = '/platform/v1/subsystems/billing/settings/invoice-day';
const ONE = { subsystemName: 'billing', settingName: 'invoice-day', settingValue: 28 };

const nameDocs = (what: string, example: string): ParameterDocs => ({
  description: `${what}, in any letter case: 1 to ${String(MAX_NAME_CODE_POINTS)} code points, no control characters.`,
  schema: { type: 'string', minLength: 1, maxLength: MAX_NAME_CODE_POINTS },
  example,
});
const SUBSYSTEM = { subsystemName: nameDocs('The subsystem', 'billing') };
/** The names in the path of a setting. */
export const NAMES = { ...SUBSYSTEM, settingName: nameDocs('The setting', 'invoice-day') };

const IF_NONE_MATCH_READ = {
  'If-None-Match': {
    description: 'ETags that the reader has: 304 if one of them is current.',
    example: '"42"',
  },
};
/** The headers that every write takes. */
export const WRITE_HEADERS: Readonly<Record<string, ParameterDocs>> = {
  'If-Match': {
    description: 'Go on only if the setting has one of these ETags (`*`: any).',
    example: '"42"',
  },
  'If-None-Match': { description: 'Go on only if the setting has none of these ETags. `*` creates only.' },
  'Idempotency-Key': {
    description:
      '1 to 255 visible ASCII characters: a repeated write gets the first answer and is done once.',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x21-\\x7e]+$' },
    example: '8e03978e-40d5-43e8-bc93-6894a57f9324',
  },
};

const text = { type: 'string' };
const REVALIDATE: Readonly<Record<string, HeaderDocs>> = {
  'Cache-Control': {
    description: 'A cache may keep this, and asks before it uses it.',
    schema: text,
    required: true,
    example: 'private, no-cache',
  },
};
const ETAG: HeaderDocs = {
  description: 'The revision; a strong tag.',
  schema: text,
  required: true,
  example: '"42"',
};

/** What every write answers when it was done. */
export const WRITTEN: AnswerDocs = jsonAnswer(
  'Done; the setting as it was written.',
  platformSetting,
  { written: { summary: 'The setting', value: ONE } },
  { ETag: ETAG },
);

/** An answer that says why a write or a read was not possible. */
export function settingProblem(description: string, ...reasons: readonly SettingErrorReason[]): AnswerDocs {
  const examples = reasons.map((reason) => [
    reason,
    problemExample(SETTING_PROBLEMS[reason].title, SETTING_PROBLEMS[reason], PATH),
  ]);
  return problemAnswer(description, Object.fromEntries(examples) as AnswerDocs['examples'] & object);
}

/** 400 of an operation that takes names. */
export const BAD_NAME = problemAnswer(
  'A name, a header or a query parameter is not valid; `errors` tells which.',
  {
    name: problemExample(
      'A name that no setting can have',
      {
        status: 400,
        detail: 'A name in the path is not valid.',
        errors: { settingName: ['must have 1 to 200 characters and no control character'] },
      },
      '/platform/v1/subsystems/billing/settings/%07',
    ),
  },
);

/** 412 and 422 of every write. */
export const WRITE_REFUSALS = {
  412: settingProblem(
    '`If-Match` or `If-None-Match` does not hold: nothing was written.',
    'precondition-failed',
  ),
  422: settingProblem('The `Idempotency-Key` belongs to another request.', 'idempotency-key-reused'),
};

const NOT_MODIFIED: AnswerDocs = {
  description: 'The reader has this revision already.',
  headers: { ETag: ETAG, ...REVALIDATE },
};
const NOT_FOUND = settingProblem('There is no such setting.', 'setting-not-found');
const PAGE = jsonAnswer(
  'One page.',
  settingsPage,
  {
    first: {
      summary: 'The first of several pages',
      value: { settings: [ONE], nextPageKey: 'WyJiaWxsaW5nIl0.5kV…' },
    },
    none: { summary: 'No settings', value: { settings: [], nextPageKey: null } },
  },
  REVALIDATE,
);

/** The headers of a page. */
export const PAGE_HEADERS = REVALIDATE;

const TAG = 'Settings';

export const LIST_ALL: OperationDocs = {
  ...{ id: 'listAllSettings', tag: TAG, summary: 'List all settings of all subsystems' },
  query: PAGE_QUERY_DOCS,
  answers: { 200: PAGE, 400: BAD_NAME },
};
export const LIST_SUBSYSTEM: OperationDocs = {
  ...{ id: 'listSubsystemSettings', tag: TAG, summary: 'List the settings of one subsystem' },
  description: 'A subsystem that nobody wrote to has an empty list.',
  path: SUBSYSTEM,
  query: PAGE_QUERY_DOCS,
  answers: { 200: PAGE, 400: BAD_NAME },
};
export const GET_SETTING: OperationDocs = {
  ...{ id: 'getSetting', tag: TAG, summary: 'Get one setting' },
  path: NAMES,
  headers: IF_NONE_MATCH_READ,
  answers: {
    200: jsonAnswer(
      'The setting.',
      platformSetting,
      { one: { summary: 'A number', value: ONE } },
      { ETag: ETAG, ...REVALIDATE },
    ),
    ...{ 304: NOT_MODIFIED, 400: BAD_NAME, 404: NOT_FOUND },
  },
};
export const GET_VALUE: OperationDocs = {
  ...{ id: 'getSettingValue', tag: TAG, summary: 'Get the bare value of a setting' },
  description: 'The JSON value itself, with nothing around it, byte for byte as it was written.',
  path: NAMES,
  headers: IF_NONE_MATCH_READ,
  answers: {
    200: jsonAnswer(
      'The value.',
      settingValue,
      {
        number: { summary: 'A number', value: 28 },
        object: { summary: 'An object', value: { channels: ['mail', 'sms'], quietHours: true } },
      },
      { ETag: ETAG, ...REVALIDATE },
    ),
    ...{ 304: NOT_MODIFIED, 400: BAD_NAME, 404: NOT_FOUND },
  },
};
export const PUT_SETTING: OperationDocs = {
  ...{ id: 'putSetting', tag: TAG, summary: 'Create a setting or replace its value' },
  description: 'The setting and its history entry are written in one transaction.',
  path: NAMES,
  headers: WRITE_HEADERS,
  body: {
    schema: putPlatformSettingRequest,
    examples: {
      number: { summary: 'A number', value: { settingValue: 28 } },
      object: {
        summary: 'An object',
        value: { settingValue: { channels: ['mail', 'sms'], quietHours: true } },
      },
    },
  },
  answers: {
    200: WRITTEN,
    400: problemAnswer('A name, a header or the value is not valid; `errors` tells which.', {
      value: problemExample(
        'No value',
        {
          status: 400,
          title: 'Invalid setting value',
          detail: 'The body does not hold a setting value that can be stored.',
          errors: { settingValue: ['settingValue is required'] },
        },
        PATH,
      ),
    }),
    ...WRITE_REFUSALS,
  },
};
export const DELETE_SETTING: OperationDocs = {
  ...{ id: 'deleteSetting', tag: TAG, summary: 'Delete a setting' },
  description: 'Its history stays, with an entry for the deletion.',
  path: NAMES,
  headers: WRITE_HEADERS,
  answers: {
    200: jsonAnswer('Deleted; the setting as it was.', platformSetting, {
      deleted: { summary: 'The setting', value: ONE },
    }),
    ...{ 400: BAD_NAME, 404: NOT_FOUND },
    ...WRITE_REFUSALS,
  },
};
