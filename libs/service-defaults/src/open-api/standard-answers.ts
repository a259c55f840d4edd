import { ANSWER_HEADERS, problemAnswer, problemExample } from './answers';
import type { AnswerDocs, OperationDocs, RouteRequirement } from './documented';

const HERE = '/the/path/asked/for';

/** What operations of every service answer; each is one component of the document. */
export const STANDARD_ANSWERS = {
  Unauthorized: problemAnswer(
    'There is no access token, or it is not valid, expired or revoked.',
    {
      missing: problemExample('No token', { status: 401, detail: 'A bearer token is required.' }, HERE),
      expired: problemExample('Expired token', { status: 401, detail: 'The access token expired.' }, HERE),
      revoked: problemExample(
        'Revoked token',
        { status: 401, detail: 'The access token was revoked.' },
        HERE,
      ),
    },
    { headers: ANSWER_HEADERS.challenge },
  ),
  Forbidden: problemAnswer(
    'The token is good, but its personas and roles do not allow this.',
    {
      persona: problemExample(
        'Another persona is needed',
        { status: 403, detail: 'Your personas and roles do not allow this.' },
        HERE,
      ),
    },
    {
      headers: {
        'WWW-Authenticate': {
          description: 'The challenge of RFC 6750. Absent where the resource, not the token, is the reason.',
          schema: { type: 'string' },
          example: 'Bearer error="insufficient_scope"',
        },
      },
    },
  ),
  PayloadTooLarge: problemAnswer('The body is larger than this service takes.', {
    large: problemExample('Too large', { status: 413, detail: 'The request body is too large.' }, HERE),
  }),
  UnsupportedMediaType: problemAnswer('The body has another content type, charset or encoding.', {
    type: problemExample(
      'Another content type',
      { status: 415, detail: 'This content type is not supported.' },
      HERE,
    ),
  }),
  UnexpectedError: problemAnswer('A fault of the service. The `traceId` finds it in the logs.', {
    fault: problemExample('A fault', { status: 500 }, HERE),
  }),
  Unavailable: problemAnswer(
    'Something the service needs is out of reach, or too busy. Ask again.',
    {
      database: problemExample(
        'The database is away',
        { status: 503, detail: 'The database cannot be reached.' },
        HERE,
      ),
    },
    { headers: ANSWER_HEADERS.retryAfter },
  ),
} as const satisfies Record<string, AnswerDocs>;

export type StandardAnswer = keyof typeof STANDARD_ANSWERS;

/** The standard answers of an operation, by status.
 *  @param readsBody a body is read and judged, whether the operation has a use for it or not: anything but a GET */
export function standardAnswersOf(
  { isStatic = false, hasOwnBodyErrors = false }: OperationDocs,
  { isPublic, needs }: RouteRequirement,
  readsBody: boolean,
): Record<number, StandardAnswer> {
  const judgesBodies = readsBody && !hasOwnBodyErrors;
  return {
    ...(isPublic ? {} : { 401: 'Unauthorized' }),
    ...(needs === null ? {} : { 403: 'Forbidden' }),
    ...(judgesBodies ? { 413: 'PayloadTooLarge', 415: 'UnsupportedMediaType' } : {}),
    ...(isStatic ? {} : { 500: 'UnexpectedError', 503: 'Unavailable' }),
  };
}
