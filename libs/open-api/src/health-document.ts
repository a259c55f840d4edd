import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { problemBody, problemContent, RESPONSE_HEADERS } from './problem-responses';
import type { HeaderObject, MediaTypeObject, OpenApiDocument, ResponseObject } from './schemas';

const checks = z.record(z.string(), z.enum(['ok', 'failed', 'excluded'])).meta({
  description: 'What was looked at, or left out, by name.',
  examples: [{ database: 'ok', migrations: 'ok' }],
});

class AliveDto extends createZodDto(z.object({ status: z.literal('ok') }).meta({ id: 'Alive' })) {}
class HealthyDto extends createZodDto(
  z.object({ status: z.literal('ok'), checks }).meta({ id: 'Healthy' }),
) {}
class NotReadyDto extends createZodDto(
  z.object({ ...problemBody.shape, checks }).meta({ id: 'NotReady', description: 'What is not ready.' }),
) {}

export const HEALTH_SCHEMAS = [AliveDto.Output, HealthyDto.Output, NotReadyDto.Output];
export const HEALTH_TAG = { name: 'Health', description: 'What an orchestrator asks. No token needed.' };

const { noStore, retryAfter } = RESPONSE_HEADERS;
const tags = [HEALTH_TAG.name];
const security: [] = [];

/** The probes, which every service has beside its controllers, where Nest does not see them. */
export function healthPaths(): OpenApiDocument['paths'] {
  const live = {
    operationId: 'getLiveness',
    tags,
    summary: 'Says that the process answers',
    description: 'Looks at nothing else: a failing dependency is no reason to restart the process.',
    security,
    responses: { 200: ok('It answers.', 'Alive', { summary: 'Alive', value: { status: 'ok' } }) },
  };
  const ready = {
    operationId: 'getReadiness',
    tags,
    summary: 'Says whether to send traffic here',
    description: '503 until the service has started, when something it needs is away, and while it stops.',
    security,
    parameters: [
      {
        name: 'exclude',
        in: 'query' as const,
        required: false,
        description:
          'A readiness check that is not asked and does not count, by its name in `checks`; may be repeated. For a probe ' +
          'whose callers can do without what it looks at. That the service has started cannot be excluded.',
        schema: { type: 'array', items: { type: 'string' } },
      },
    ],
    responses: { ...probeResponses('/health/ready', { database: 'failed' }), 400: UNKNOWN_CHECK },
  };
  const startup = {
    operationId: 'getStartup',
    tags,
    summary: 'Says whether the service has started',
    description: '503 until the migrations of the database have been applied.',
    security,
    responses: probeResponses('/health/startup', { migrations: 'failed' }),
  };
  return {
    '/health/live': { get: live },
    '/health/ready': { get: ready },
    '/health/startup': { get: startup },
  };
}

const UNKNOWN_CHECK: ResponseObject = {
  description: 'There is no such readiness check.',
  headers: noStore,
  content: problemContent(400, {
    unknown: {
      summary: 'A mistyped name',
      detail: 'There is no such readiness check.',
      errors: { exclude: ['Must be one of: database, revocations.'] },
      instance: '/health/ready',
    },
  }),
};

function probeResponses(instance: string, failed: Record<string, string>): Record<string, ResponseObject> {
  const value = { status: 'ok', checks: { database: 'ok' } };
  const notReady = { summary: 'Not ready', detail: 'Not ready.', extensions: { checks: failed }, instance };
  const headers: Record<string, HeaderObject> = { ...retryAfter, ...noStore };
  return {
    200: ok('Yes.', 'Healthy', { summary: 'Everything is there', value }),
    503: { description: 'Not now.', headers, content: problemContent(503, { failed: notReady }, 'NotReady') },
  };
}

function ok(
  description: string,
  schema: string,
  example: NonNullable<MediaTypeObject['examples']>[string],
): ResponseObject {
  const content = { schema: { $ref: `#/components/schemas/${schema}` }, examples: { ok: example } };
  return { description, headers: noStore, content: { 'application/json': content } };
}
