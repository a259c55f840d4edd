import { PAGE_QUERY_DOCS, jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import {
  BAD_NAME,
  NAMES,
  PAGE_HEADERS,
  WRITE_HEADERS,
  WRITE_REFUSALS,
  WRITTEN,
  settingProblem,
} from './setting-docs';
import { historyPage } from './setting.dto';

const ENTRY = {
  id: 1042,
  operation: 'write',
  settingValue: 28,
  personId: null,
  userId: 9001,
  personName: 'Ivy Internal',
  persona: 1,
  occurredAt: '2026-03-02T09:15:00.123456Z',
  requestId: '4bf92f3577b34da6a3ce929d0e0e4736',
};

export const LIST_HISTORY: OperationDocs = {
  ...{ id: 'listSettingHistory', tag: 'History', summary: 'List the history of a setting, newest first' },
  description: 'Also after the setting was deleted. A setting that never was has an empty history.',
  path: NAMES,
  query: PAGE_QUERY_DOCS,
  answers: {
    200: jsonAnswer(
      'One page.',
      historyPage,
      { one: { summary: 'One write', value: { history: [ENTRY], nextPageKey: null } } },
      PAGE_HEADERS,
    ),
    400: BAD_NAME,
  },
};

export const RESTORE_SETTING: OperationDocs = {
  ...{ id: 'restoreSetting', tag: 'History', summary: 'Write a value of the past again' },
  description:
    'What the entry wrote, or what it deleted, becomes the value: a write like any other, with an entry of its own.',
  path: {
    ...NAMES,
    historyId: {
      description: '`id` of an entry of this setting.',
      schema: { type: 'string', pattern: '^[1-9][0-9]{0,17}$' },
      example: '1042',
    },
  },
  headers: WRITE_HEADERS,
  answers: {
    200: WRITTEN,
    400: BAD_NAME,
    404: settingProblem('The history of this setting has no such entry.', 'history-entry-not-found'),
    ...WRITE_REFUSALS,
  },
};
