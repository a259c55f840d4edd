import { problems } from '@platform/service-defaults';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Leaves JSON bodies as the bytes that were sent: a parsed value could not be stored as it was written. */
export function keepJsonBodiesRaw(app: NestFastifyApplication): void {
  const fastify: FastifyInstance = app.getHttpAdapter().getInstance();
  fastify.removeContentTypeParser('application/json');
  fastify.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const coding = contentCoding(request);
    if (coding === 'identity') done(null, body);
    else done(problems.unsupportedMediaType(`A body in content coding ${coding} is not understood.`));
  });
}

function contentCoding(request: FastifyRequest): string {
  return request.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
}
