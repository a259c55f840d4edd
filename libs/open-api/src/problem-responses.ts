import { PROBLEM_JSON, renderProblem } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { ApiResponse } from './decorators';
import type { HeaderObject, MediaTypeObject, ResponseObject } from './schemas';

/** The body of every error response that is a problem (RFC 9457). */
export const problemBody = z
  .object({
    type: z.string().meta({
      description:
        'Names the kind of problem. `about:blank`: the status says it all. Compare it, do not fetch it.',
      format: 'uri-reference',
    }),
    title: z.string().meta({ description: 'The kind of problem in words.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status, once more.' }),
    detail: z.string().optional().meta({ description: 'What is wrong with this request, for people.' }),
    instance: z.string().meta({ description: 'The path that was asked for, without its query.' }),
    traceId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .meta({
        description:
          'Finds this request in the logs: the id of `traceparent` if one was sent, else a new one.',
      }),
    errors: z.record(z.string(), z.array(z.string())).optional().meta({
      description: 'What is wrong, by field (`a.b.0`; `request` stands for the whole).',
    }),
  })
  .meta({ id: 'Problem', description: 'An error answer as RFC 9457 describes it.' });

export class ProblemDto extends createZodDto(problemBody) {}

/** A problem as an example. @param instance the path that was asked for */
interface ProblemExample extends Omit<Problem, 'status' | 'headers'> {
  readonly summary: string;
  readonly instance: string;
}

type Examples = Readonly<Record<string, ProblemExample>>;

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

/** `content` of a response that is a problem, with examples rendered as the services send them. */
export function problemContent(
  status: number,
  examples: Examples,
  schema = 'Problem',
): Record<typeof PROBLEM_JSON, MediaTypeObject> {
  const rendered = Object.entries(examples).map(([name, { summary, instance, ...problem }]) => {
    const value: unknown = JSON.parse(renderProblem({ ...problem, status }, instance, TRACE_ID));
    return [name, { summary, value }] as const;
  });
  return {
    [PROBLEM_JSON]: {
      schema: { $ref: `#/components/schemas/${schema}` },
      examples: Object.fromEntries(rendered),
    },
  };
}

/**
 * `content` of a JSON response, for a status that has another content type too.
 * @param type a class by `createZodDto`, or its `Output`
 */
export function jsonContent(
  type: { readonly name: string },
  examples: NonNullable<MediaTypeObject['examples']>,
): Record<'application/json', MediaTypeObject> {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${type.name}` }, examples } };
}

export function ProblemResponse(
  status: number,
  description: string,
  examples: Examples,
  headers?: Record<string, HeaderObject>,
): MethodDecorator & ClassDecorator {
  return ApiResponse({ status, ...problemResponse(status, description, examples, headers) });
}

function problemResponse(
  status: number,
  description: string,
  examples: Examples,
  headers: Record<string, HeaderObject> = {},
): ResponseObject {
  const content = problemContent(status, examples);
  return { description, ...(Object.keys(headers).length === 0 ? {} : { headers }), content };
}

/** Response headers that several services have. */
export const RESPONSE_HEADERS = {
  challenge: {
    'WWW-Authenticate': {
      description: 'The challenge of RFC 6750: `error` is there when a token was sent.',
      schema: { type: 'string' },
      required: true,
      example: 'Bearer error="invalid_token", error_description="The access token expired."',
    },
  },
  retryAfter: {
    'Retry-After': {
      description: 'Seconds to wait before asking again.',
      schema: { type: 'integer', minimum: 0 },
      required: true,
      example: 1,
    },
  },
  noStore: {
    'Cache-Control': {
      description: 'No cache may keep this.',
      schema: { type: 'string', const: 'no-store' } as object,
      required: true,
      example: 'no-store',
    },
  },
} satisfies Record<string, Record<string, HeaderObject>>;

function refused(summary: string, detail?: string): ProblemExample {
  return { summary, instance: '/the/path/asked/for', ...(detail === undefined ? {} : { detail }) };
}

/** What operations of every service answer; each is one component of the document. */
export const STANDARD_RESPONSES: Readonly<Record<string, ResponseObject>> = {
  Unauthorized: problemResponse(
    401,
    'There is no access token, or it is not valid, expired or revoked.',
    {
      missing: refused('No token', 'A bearer token is required.'),
      expired: refused('Expired token', 'The access token expired.'),
      revoked: refused('Revoked token', 'The access token was revoked.'),
    },
    RESPONSE_HEADERS.challenge,
  ),
  Forbidden: problemResponse(
    403,
    'The token is good, but its personas and roles do not allow this.',
    { persona: refused('Another persona is needed', 'Your personas and roles do not allow this.') },
    {
      'WWW-Authenticate': {
        description: 'The challenge of RFC 6750. Absent where the resource, not the token, is the reason.',
        schema: { type: 'string' },
        example: 'Bearer error="insufficient_scope"',
      },
    },
  ),
  PayloadTooLarge: problemResponse(413, 'The body is larger than this service takes.', {
    large: refused('Too large', 'The request body is too large.'),
  }),
  UnsupportedMediaType: problemResponse(415, 'The body has another content type, charset or encoding.', {
    type: refused(
      'Another content type',
      'The body must be JSON (application/json), in UTF-8 and uncompressed.',
    ),
  }),
  UnexpectedError: problemResponse(500, 'A fault of the service. The `traceId` finds it in the logs.', {
    fault: refused('A fault'),
  }),
  Unavailable: problemResponse(
    503,
    'Something the service needs is out of reach, or too busy. Ask again.',
    { database: refused('The database is away', 'The database cannot be reached.') },
    RESPONSE_HEADERS.retryAfter,
  ),
};

/**
 * The standard responses of a route, by status.
 * @param readsBody a body is read and judged, whether the operation has a use for it or not: anything but a
 * GET
 */
export function standardResponses(
  { isPublic, needs }: { readonly isPublic: boolean; readonly needs: string | null },
  readsBody: boolean,
): Record<string, { $ref: string }> {
  const names = {
    ...(isPublic ? {} : { 401: 'Unauthorized' }),
    ...(needs === null ? {} : { 403: 'Forbidden' }),
    ...(readsBody ? { 413: 'PayloadTooLarge', 415: 'UnsupportedMediaType' } : {}),
    500: 'UnexpectedError',
    503: 'Unavailable',
  };
  return Object.fromEntries(
    Object.entries(names).map(([status, name]) => [status, { $ref: `#/components/responses/${name}` }]),
  );
}
