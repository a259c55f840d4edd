import { z } from 'zod';
import { ANSWER_HEADERS, jsonAnswer, problemAnswer, problemBody, problemExample } from './answers';
import type { OpenApiDocument, ParameterObject } from './document';
import type { OperationDocs } from './documented';
import { operationObject } from './operation-object';
import type { SchemaComponents } from './schema-components';

const checks = z.record(z.string(), z.enum(['ok', 'failed', 'excluded'])).meta({
  description: 'What was looked at, or left out, by name.',
  examples: [{ database: 'ok', migrations: 'ok' }],
});
const healthy = z.object({ status: z.literal('ok'), checks }).meta({ id: 'Healthy' });
const notReady = problemBody.extend({ checks }).meta({ id: 'NotReady', description: 'What is not ready.' });
const alive = z.object({ status: z.literal('ok') }).meta({ id: 'Alive' });

const ok = { ok: { summary: 'Everything is there', value: { status: 'ok', checks: { database: 'ok' } } } };

const unknownCheck = {
  status: 400,
  detail: 'There is no such readiness check.',
  errors: { exclude: ['Must be one of: database, revocations.'] },
};

const readiness = probe('getReadiness', 'Says whether to send traffic here', {
  description: '503 until the service has started, when something it needs is away, and while it stops.',
  path: '/health/ready',
  failed: { database: 'failed' },
});

const HEALTH_OPERATIONS: Readonly<Record<string, OperationDocs>> = {
  '/health/live': {
    id: 'getLiveness',
    tag: 'Health',
    summary: 'Says that the process answers',
    description: 'Looks at nothing else: a failing dependency is no reason to restart the process.',
    isStatic: true,
    answers: {
      200: jsonAnswer(
        'It answers.',
        alive,
        { ok: { summary: 'Alive', value: { status: 'ok' } } },
        ANSWER_HEADERS.noStore,
      ),
    },
  },
  '/health/ready': {
    ...readiness,
    query: {
      exclude: {
        description:
          'A readiness check that is not asked and does not count, by its name in `checks`; may be repeated. For a probe ' +
          'whose callers can do without what it looks at. That the service has started cannot be excluded.',
        schema: { type: 'array', items: { type: 'string' } },
        example: ['bus-main', 'bus-scheduling'],
      },
    },
    answers: {
      ...readiness.answers,
      400: problemAnswer(
        'There is no such readiness check.',
        { unknown: problemExample('A mistyped name', unknownCheck, '/health/ready') },
        { headers: ANSWER_HEADERS.noStore },
      ),
    },
  },
  '/health/startup': probe('getStartup', 'Says whether the service has started', {
    description: '503 until the migrations of the database have been applied.',
    path: '/health/startup',
    failed: { migrations: 'failed' },
  }),
};

function probe(
  id: string,
  summary: string,
  { description, path, failed }: { description: string; path: string; failed: Record<string, string> },
): OperationDocs {
  const problem = { status: 503, detail: 'Not ready.', extensions: { checks: failed } };
  const headers = { ...ANSWER_HEADERS.retryAfter, ...ANSWER_HEADERS.noStore };
  return {
    ...{ id, tag: 'Health', summary, description, isStatic: true },
    answers: {
      200: jsonAnswer('Yes.', healthy, ok, ANSWER_HEADERS.noStore),
      503: problemAnswer(
        'Not now.',
        { failed: problemExample('Not ready', problem, path) },
        {
          headers,
          body: notReady,
        },
      ),
    },
  };
}

/** The probes, which every service has beside its controllers. */
export function healthPaths(schemas: SchemaComponents): OpenApiDocument['paths'] {
  const access = { isPublic: true, needs: null };
  return Object.fromEntries(
    Object.entries(HEALTH_OPERATIONS).map(([path, docs]) => [
      path,
      {
        get: operationObject(
          { path, method: 'get' },
          { parameters: queryOf(docs) },
          { docs, access },
          schemas,
        ),
      },
    ]),
  );
}

/** Nest's scanner does not see the probes: their query is what the words say. */
function queryOf({ query = {} }: OperationDocs): ParameterObject[] {
  return Object.entries(query).map(([name, { schema = { type: 'string' } }]) => ({
    name,
    in: 'query',
    schema,
  }));
}
