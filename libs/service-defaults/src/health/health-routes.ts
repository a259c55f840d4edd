import { Logger } from '@nestjs/common';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { PROBLEM_JSON, renderProblem } from '../problems/render-problem';
import type { HealthRegistry } from './health-registry';
import { HealthReporter } from './health-report';
import type { HealthReport } from './health-report';

/**
 * `/health/live` (this process answers), `/health/ready` (send traffic here), `/health/startup` (started). They sit on
 * Fastify itself: no guard of an app can close them by accident.
 */
export function addHealthRoutes(instance: FastifyInstance, registry: HealthRegistry): void {
  const logger = new Logger('Health');
  const reporter = new HealthReporter(registry, (check, error) => {
    logger.warn(error instanceof Error ? error : String(error), `Health ${check}`);
  });
  instance.get('/health/live', (_request, reply) => {
    void reply.header('cache-control', 'no-store').send({ status: 'ok' });
  });
  instance.get('/health/ready', async (request, reply) => answer(await reporter.ready(), request, reply));
  instance.get('/health/startup', async (request, reply) =>
    answer(await reporter.hasStarted(), request, reply),
  );
}

function answer(
  { healthy, checks }: HealthReport,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  reply.header('cache-control', 'no-store');
  if (healthy) return reply.send({ status: 'ok', checks });
  const problem = { status: 503, detail: 'Not ready.', extensions: { checks } };
  return reply
    .code(503)
    .header('retry-after', '1')
    .header('content-type', PROBLEM_JSON)
    .send(renderProblem(problem, request.url, request.id));
}
