import { z } from 'zod';
import { PROBLEM_JSON, renderProblem } from '../problems/problem';
import type { Problem } from '../problems/problem';
import type { AnswerDocs, ExampleDocs, HeaderDocs } from './documented';

/** The body of every error answer that is a problem (RFC 9457). */
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

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';

/** A problem as it is sent, as an example. @param instance path that was asked for */
export function problemExample(summary: string, problem: Problem, instance: string): ExampleDocs {
  return { summary, value: JSON.parse(renderProblem(problem, instance, TRACE_ID)) as unknown };
}

/** An answer with a JSON body. */
export function jsonAnswer(
  description: string,
  body: z.ZodType,
  examples: Readonly<Record<string, ExampleDocs>>,
  headers: Readonly<Record<string, HeaderDocs>> = {},
): AnswerDocs {
  return { description, body, examples, headers };
}

/** An answer that is a problem. @param body where it has members of its own */
export function problemAnswer(
  description: string,
  examples: Readonly<Record<string, ExampleDocs>>,
  { headers = {}, body = problemBody }: { headers?: AnswerDocs['headers']; body?: z.ZodType } = {},
): AnswerDocs {
  return { description, body, contentType: PROBLEM_JSON, examples, headers };
}

const text = { type: 'string' };

/** Headers that answers of several services have. */
export const ANSWER_HEADERS = {
  challenge: {
    'WWW-Authenticate': {
      description: 'The challenge of RFC 6750: `error` is there when a token was sent.',
      schema: text,
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
      schema: { type: 'string', const: 'no-store' },
      required: true,
      example: 'no-store',
    },
  },
} as const satisfies Record<string, Record<string, HeaderDocs>>;
