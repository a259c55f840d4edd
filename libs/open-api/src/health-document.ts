import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { problemBody, problemContent, RESPONSE_HEADERS } from './problem-responses';
import type { HeaderObject, MediaTypeObject, OpenApiDocument, ResponseObject } from './schemas';

const checks = z.record(z.string(), z.enum(['ok', 'failed', 'excluded'])).meta({
  description: 'Results of the checks by name; `excluded` for a check that was skipped.',
  examples: [{ database: 'ok', migrations: 'ok' }],
});

class AliveDto extends createZodDto(z.object({ status: z.literal('ok') }).meta({ id: 'Alive' })) {}
class HealthyDto extends createZodDto(
  z.object({ status: z.literal('ok'), checks }).meta({ id: 'Healthy' }),
) {}
class NotReadyDto extends createZodDto(
  z
    .object({ ...problemBody.shape, checks })
    .meta({ id: 'NotReady', description: 'The service is not ready; `checks` names the failed checks.' }),
) {}

export const HEALTH_SCHEMAS = [AliveDto.Output, HealthyDto.Output, NotReadyDto.Output];
export const HEALTH_TAG = { name: 'Health', description: 'Probes for an orchestrator. No token needed.' };

const { noStore, retryAfter } = RESPONSE_HEADERS;
const tags = [HEALTH_TAG.name];
const security: [] = [];

/**
 * Returns the paths of the health probes. Every service has them outside its controllers, where Nest's scan
 * does not find them.
 */
export function healthPaths(): OpenApiDocument['paths'] {
  const live = {
    operationId: 'getLiveness',
    tags,
    summary: 'Reports that the process responds',
    description: 'Checks no dependency, because a failing dependency is no reason to restart the process.',
    security,
    responses: { 200: ok('The process responds.', 'Alive', { summary: 'Alive', value: { status: 'ok' } }) },
  };
  const ready = {
    operationId: 'getReadiness',
    tags,
    summary: 'Reports whether the service accepts traffic',
    description:
      '503 until the service has started, while a dependency is unavailable, and while the service stops.',
    security,
    parameters: [
      {
        name: 'exclude',
        in: 'query' as const,
        required: false,
        description:
          'Name of a readiness check to skip, as in `checks`; may be repeated. For probes whose callers do not ' +
          'need that dependency. The check that the service has started cannot be skipped.',
        schema: { type: 'array', items: { type: 'string' } },
      },
    ],
    responses: { ...probeResponses('/health/ready', { database: 'failed' }), 400: UNKNOWN_CHECK },
  };
  const startup = {
    operationId: 'getStartup',
    tags,
    summary: 'Reports whether the service has started',
    description: '503 until the database migrations have been applied.',
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
    200: ok('All checks passed.', 'Healthy', { summary: 'All checks passed', value }),
    503: {
      description: 'A check failed.',
      headers,
      content: problemContent(503, { failed: notReady }, 'NotReady'),
    },
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
