import { jsonAnswer } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';

export const PING: OperationDocs = {
  ...{ id: 'ping', tag: 'Diagnostics', summary: 'Answer "pong"', isStatic: true },
  answers: {
    200: jsonAnswer('A JSON string.', z.literal('pong'), { pong: { summary: 'The answer', value: 'pong' } }),
  },
};
