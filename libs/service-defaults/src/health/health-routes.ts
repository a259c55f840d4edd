import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../logging/log-safe';
import { PROBLEM_JSON, renderProblem } from '../problems/problem';
import type { Problem } from '../problems/problem';
import { HealthReporter } from './health';
import type { HealthRegistry, HealthReport } from './health';

/** `/health/live` (this process answers), `/health/ready` (send traffic here), `/health/startup` (started). They sit on Fastify itself:
 *  no guard of an app can close them by accident. `?exclude=<check>`, as often as wanted, leaves readiness checks out, for who can do
 *  without what they look at; a name that there is not is 400, so that a mistyped one is found. */
export function addHealthRoutes(instance: FastifyInstance, registry: HealthRegistry): void {
  const logger = new Logger('Health');
  const reporter = new HealthReporter(registry, (check, error) => {
    logger.warn(error instanceof Error ? error : String(error), `Health ${check}`);
  });
  instance.get('/health/live', (_request, reply) => {
    void reply.header('cache-control', 'no-store').send({ status: 'ok' });
  });
  instance.get('/health/ready', async (request, reply) => {
    const excluded = namesIn((request.query as Record<string, unknown>)['exclude']);
    const known = reporter.readinessNames;
    if (excluded.every((name) => known.includes(name)))
      return answer(await reporter.ready(new Set(excluded)), request, reply);
    const errors = { exclude: [`Must be one of: ${known.join(', ')}.`] };
    const problem = { status: 400, detail: 'There is no such readiness check.', errors };
    return sendProblem(problem, request, reply);
  });
  instance.get('/health/startup', async (request, reply) =>
    answer(await reporter.hasStarted(), request, reply),
  );
}

/** @param value of a query parameter: text, or a list of texts where it is repeated */
function namesIn(value: unknown): string[] {
  return [value ?? []].flat().map(String);
}

function answer(
  { healthy, checks }: HealthReport,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  reply.header('cache-control', 'no-store');
  if (healthy) return reply.send({ status: 'ok', checks });
  const problem = { status: 503, detail: 'Not ready.', extensions: { checks } };
  return sendProblem(problem, request, reply.header('retry-after', '1'));
}

function sendProblem(problem: Problem, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply
    .code(problem.status)
    .header('cache-control', 'no-store')
    .header('content-type', PROBLEM_JSON)
    .send(renderProblem(problem, pathOf(request.url), request.id));
}
