import { ANSWER_HEADERS, jsonAnswer, problemExample } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import { databaseStatus } from '../settings/setting.dto';

const TAG = 'Diagnostics';

export const HEALTH_CHECK: OperationDocs = {
  ...{ id: 'checkHealth', tag: TAG, summary: 'Say that the service runs', isStatic: true },
  description: 'Says nothing about the database; the answer has no body.',
  answers: { 200: { description: 'It runs.' } },
};
export const PING: OperationDocs = {
  ...{ id: 'ping', tag: TAG, summary: 'Answer "pong"', isStatic: true },
  answers: {
    200: jsonAnswer('A JSON string.', z.literal('pong'), { pong: { summary: 'The answer', value: 'pong' } }),
  },
};

const at = { latencyMs: 1.4, checkedAt: '2026-03-02T09:15:00.123Z' };

export const GET_DATABASE_STATUS: OperationDocs = {
  ...{ id: 'getDatabaseStatus', tag: TAG, summary: 'Say whether the database answers' },
  description: 'Waits for it for 2 seconds at most. Any valid token will do.',
  answers: {
    200: jsonAnswer(
      'It answers.',
      databaseStatus,
      { up: { summary: 'Up', value: { status: 'up', ...at } } },
      ANSWER_HEADERS.noStore,
    ),
    503: {
      ...jsonAnswer(
        'It does not answer; or, as a problem, tokens cannot be verified at the moment.',
        databaseStatus,
        {
          down: { summary: 'Down', value: { status: 'down', latencyMs: 2000.3, checkedAt: at.checkedAt } },
        },
      ),
      headers: ANSWER_HEADERS.retryAfter,
      orProblem: {
        tokens: problemExample(
          'Tokens cannot be verified',
          { status: 503, detail: 'Access tokens cannot be verified at the moment.' },
          '/platform/v1/diagnostics/database',
        ),
      },
    },
  },
};
