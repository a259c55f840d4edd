import { PROBLEM_JSON, renderProblem } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { ApiResponse } from './decorators';
import type { HeaderObject, MediaTypeObject, ResponseObject } from './schemas';

/** The body of an error response that is a problem (RFC 9457). */
export const problemBody = z
  .object({
    type: z.string().meta({
      description:
        'Identifies the kind of problem: compare it, do not fetch it. With `about:blank` only the status counts.',
      format: 'uri-reference',
    }),
    title: z.string().meta({ description: 'The kind of problem in words.' }),
    status: z.int().min(400).max(599).meta({ description: 'The HTTP status, repeated.' }),
    detail: z.string().optional().meta({ description: 'An explanation of this problem, for people.' }),
    instance: z.string().meta({ description: 'The path of the request, without its query.' }),
    traceId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .meta({
        description:
          'Identifies this request in the logs: the id of `traceparent` if one was sent, else a new one.',
      }),
    errors: z.record(z.string(), z.array(z.string())).optional().meta({
      description: 'Errors by field (for example `a.b.0`; `request` is the request as a whole).',
    }),
  })
  .meta({ id: 'Problem', description: 'An error response (RFC 9457).' });

export class ProblemDto extends createZodDto(problemBody) {}

/** An example of a problem. `instance` is the path of the request. */
interface ProblemExample extends Omit<Problem, 'status' | 'headers'> {
  readonly summary: string;
  readonly instance: string;
}

type Examples = Readonly<Record<string, ProblemExample>>;

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

/** Returns the `content` of a problem response, with examples rendered exactly as the services send them. */
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
 * Returns the `content` of a JSON response, for a status that also has a response of another content type.
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

/** Response headers used by several services. */
export const RESPONSE_HEADERS = {
  challenge: {
    'WWW-Authenticate': {
      description: 'The challenge of RFC 6750. It has `error` if a token was sent.',
      schema: { type: 'string' },
      required: true,
      example: 'Bearer error="invalid_token", error_description="The access token expired."',
    },
  },
  retryAfter: {
    'Retry-After': {
      description: 'Seconds to wait before a retry.',
      schema: { type: 'integer', minimum: 0 },
      required: true,
      example: 1,
    },
  },
  noStore: {
    'Cache-Control': {
      description: 'No cache may store this response.',
      schema: { type: 'string', const: 'no-store' } as object,
      required: true,
      example: 'no-store',
    },
  },
} satisfies Record<string, Record<string, HeaderObject>>;

function refused(summary: string, detail?: string): ProblemExample {
  return { summary, instance: '/the/path/asked/for', ...(detail === undefined ? {} : { detail }) };
}

/** The standard responses of all services, by their names among the document's components. */
export const STANDARD_RESPONSES: Readonly<Record<string, ResponseObject>> = {
  Unauthorized: problemResponse(
    401,
    'The access token is missing, invalid, expired or revoked.',
    {
      missing: refused('No token', 'A bearer token is required.'),
      expired: refused('Expired token', 'The access token expired.'),
      revoked: refused('Revoked token', 'The access token was revoked.'),
    },
    RESPONSE_HEADERS.challenge,
  ),
  Forbidden: problemResponse(
    403,
    'The token is valid, but its personas and roles do not allow this.',
    { persona: refused('Another persona is needed', 'Your personas and roles do not allow this.') },
    {
      'WWW-Authenticate': {
        description: 'The challenge of RFC 6750. Absent if the reason is the resource and not the token.',
        schema: { type: 'string' },
        example: 'Bearer error="insufficient_scope"',
      },
    },
  ),
  PayloadTooLarge: problemResponse(413, 'The body is too large for this service.', {
    large: refused('Too large', 'The request body is too large.'),
  }),
  UnsupportedMediaType: problemResponse(415, 'The body has another content type, charset or encoding.', {
    type: refused(
      'Another content type',
      'The body must be JSON (application/json), in UTF-8 and uncompressed.',
    ),
  }),
  UnexpectedError: problemResponse(500, 'An error of the service. The `traceId` identifies it in the logs.', {
    fault: refused('A fault'),
  }),
  Unavailable: problemResponse(
    503,
    'A dependency of the service is unavailable or overloaded. Try again later.',
    { database: refused('The database is unreachable', 'The database cannot be reached.') },
    RESPONSE_HEADERS.retryAfter,
  ),
};

/**
 * Returns the standard responses of a route, by status.
 * @param readsBody true for every method but GET: the service reads and checks a body even if the operation
 * does not use it
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
