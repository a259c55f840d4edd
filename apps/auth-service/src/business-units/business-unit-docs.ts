import { ANSWER_HEADERS, jsonAnswer, problemAnswer, problemExample } from '@platform/service-defaults';
import type { AnswerDocs, OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import { deprecationHeaders } from '../token/token-docs';

const TAG = 'Business units';

/** What the customers service may make of a request. */
function upstreamAnswers(path: string): Record<number, AnswerDocs> {
  return {
    403: problemAnswer('The customers service refused this caller.', {
      refused: problemExample(
        'Refused',
        { status: 403, detail: 'The customers service refused this caller.' },
        path,
      ),
    }),
    404: problemAnswer('The customers service knows no such business unit.', {
      unknown: problemExample(
        'Unknown',
        { status: 404, detail: 'The customers service knows no such business unit.' },
        path,
      ),
    }),
    502: problemAnswer('The customers service failed, or its answer cannot be used.', {
      failed: problemExample('Failed', { status: 502, detail: 'The customers service failed.' }, path),
    }),
    503: problemAnswer(
      'The customers service cannot be reached, or tokens cannot be verified.',
      {
        away: problemExample(
          'Away',
          { status: 503, detail: 'The customers service cannot be reached at the moment.' },
          path,
        ),
      },
      { headers: ANSWER_HEADERS.retryAfter },
    ),
  };
}

const DEPRECATED = {
  tag: TAG,
  deprecated: true,
  description: 'Deprecated: asks the customers service with the token of the caller. Ask it yourself.',
};

export const LIST_FACILITIES: OperationDocs = {
  ...{ id: 'listFacilitiesOfBusinessUnit', summary: 'List the facilities of a business unit' },
  ...DEPRECATED,
  path: {
    businessUnitId: { description: 'The business unit.', schema: { type: 'integer' }, example: 77 },
  },
  answers: {
    200: jsonAnswer(
      'Numbers of facilities.',
      z.array(z.int()),
      { two: { summary: 'Two facilities', value: [501, 502] } },
      deprecationHeaders(),
    ),
    400: problemAnswer('Not the number of a business unit.', {
      number: problemExample(
        'Not a number',
        { status: 400, detail: 'The business unit must be an integer.' },
        '/auth/buid/x/facility-access',
      ),
    }),
    ...upstreamAnswers('/auth/buid/77/facility-access'),
  },
};

export const FIND_BY_PLT: OperationDocs = {
  ...{ id: 'findBusinessUnitByPlt', summary: 'Find a business unit by its PLT code' },
  ...DEPRECATED,
  query: { plt: { description: 'The PLT code.', example: 'PLT-77' } },
  answers: {
    200: jsonAnswer(
      'The number of the business unit.',
      z.int(),
      { found: { summary: 'Found', value: 77 } },
      deprecationHeaders(),
    ),
    400: problemAnswer('There is no usable PLT code; `errors` tells why.', {
      missing: problemExample(
        'No code',
        {
          status: 400,
          detail: 'The request is not valid.',
          errors: { plt: ['Invalid input: expected string, received undefined'] },
        },
        '/auth/buid',
      ),
    }),
    ...upstreamAnswers('/auth/buid'),
  },
};
