import { jsonAnswer, problemAnswer, problemExample } from '@platform/service-defaults';
import type { OperationDocs } from '@platform/service-defaults';
import { z } from 'zod';
import type { Revocation } from './revocation';

const TAG = 'Revocations';
const PATH = '/auth/revocations/svc-personid/1003';

const revocation = z
  .object({
    domain: z.enum(['svc-personid', 'internal-legacy', 'jti']),
    identifier: z.string(),
    revocationDate: z.string().meta({ format: 'date-time', description: 'When it was set.' }),
  })
  .meta({ id: 'Revocation', description: 'What stopped working, and when.' }) satisfies z.ZodType<Revocation>;

const RITA: Revocation = {
  domain: 'svc-personid',
  identifier: '1003',
  revocationDate: '2026-03-02T09:15:00.123+00:00',
};

const KEY = {
  domain: {
    description: `What is revoked: \`jti\` (or \`token\`) one token, and with a refresh token its whole sign-in; \`svc-personid\` every token of a
person, \`internal-legacy\` every token of an internal user, issued up to then. In any letter case.`,
    schema: { type: 'string', examples: ['svc-personid', 'internal-legacy', 'jti', 'token'] },
    example: 'svc-personid',
  },
  identifier: { description: 'The `jti` of a token, or the number of a person or user.', example: '1003' },
};

const BAD_KEY = problemAnswer('There is no such domain, or it cannot hold this identifier.', {
  domain: problemExample(
    'Unknown domain',
    { status: 400, detail: 'The domain must be one of svc-personid, internal-legacy, jti, token.' },
    '/auth/revocations/user/1003',
  ),
  identifier: problemExample(
    'Not an identifier',
    { status: 400, detail: 'The identifier is not valid for this domain.' },
    '/auth/revocations/svc-personid/rita',
  ),
});

export const LIST_REVOCATIONS: OperationDocs = {
  ...{ id: 'listRevocations', tag: TAG, summary: 'List the revocations after a date' },
  description: 'In the order of their dates. The whole list, unless `limit` asks for pages.',
  query: {
    minDate: {
      description: 'A date, or a date-time with offset; only later revocations are listed.',
      schema: { type: 'string', default: '2018-11-19' },
      example: '2026-01-01T00:00:00Z',
    },
    limit: {
      description: 'Asks for pages of so many entries; `Link` then names the next one.',
      schema: { type: 'integer', minimum: 1, maximum: 10_000 },
      example: 1_000,
    },
    cursor: { description: 'From the `Link` of the previous page.' },
  },
  answers: {
    200: jsonAnswer(
      'The revocations, or one page of them.',
      z.array(revocation),
      {
        one: { summary: 'One revocation', value: [RITA] },
        none: { summary: 'Nothing since', value: [] },
      },
      {
        Link: {
          description: 'The next page, if there may be one.',
          schema: { type: 'string' },
          example:
            '</auth/revocations?minDate=2026-01-01T00%3A00%3A00.000Z&limit=1000&cursor=WyJ…>; rel="next"',
        },
      },
    ),
    400: problemAnswer('A query parameter is not valid; `errors` tells which.', {
      minDate: problemExample(
        'Not a date',
        {
          status: 400,
          detail: 'The request is not valid.',
          errors: { minDate: ['must be a date or a date-time with offset'] },
        },
        '/auth/revocations',
      ),
    }),
  },
};

export const GET_REVOCATION: OperationDocs = {
  ...{ id: 'getRevocation', tag: TAG, summary: 'Get one revocation' },
  path: KEY,
  answers: {
    200: jsonAnswer('The revocation.', revocation, { one: { summary: 'Of a person', value: RITA } }),
    400: BAD_KEY,
    404: problemAnswer('It was not revoked.', {
      none: problemExample('Not revoked', { status: 404, detail: 'There is no such revocation.' }, PATH),
    }),
  },
};

export const PUT_REVOCATION: OperationDocs = {
  ...{ id: 'putRevocation', tag: TAG, summary: 'Revoke now' },
  description: `Sets the date to the present, also of what was revoked before. Every service refuses the tokens within two seconds; signing in
again works at once.`,
  path: KEY,
  answers: {
    200: { description: 'Revoked. No body.' },
    400: BAD_KEY,
    403: problemAnswer('Only where `REVOCATION_WRITE_POLICY=self-or-admin` limits who may revoke what.', {
      other: problemExample(
        'Somebody else',
        { status: 403, detail: 'You may revoke only yourself and your own tokens.' },
        PATH,
      ),
    }),
  },
};
