import { jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';

const TAG = 'Diagnostics';

export const PING: OperationDocs = {
  ...{ id: 'ping', tag: TAG, summary: 'Answer "Pong"', isStatic: true },
  answers: {
    200: jsonAnswer('A JSON string.', z.literal('Pong'), { pong: { summary: 'The answer', value: 'Pong' } }),
  },
};
export const GET_VERSION: OperationDocs = {
  ...{ id: 'getVersion', tag: TAG, summary: 'Get the running version', isStatic: true },
  answers: {
    200: jsonAnswer('A JSON string.', z.string(), { version: { summary: 'A version', value: '0.1.0' } }),
  },
};
