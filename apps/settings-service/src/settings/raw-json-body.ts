import { problems } from '@platform/service-defaults';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Leaves JSON bodies as the bytes that were sent: a parsed value could not be stored as it was written. */
export function keepJsonBodiesRaw(app: NestFastifyApplication): void {
  const fastify: FastifyInstance = app.getHttpAdapter().getInstance();
  fastify.removeContentTypeParser('application/json');
  fastify.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (isPlainUtf8(request)) done(null, body);
    else done(problems.unsupportedMediaType('The body must be uncompressed UTF-8.'));
  });
}

function isPlainUtf8({ headers }: FastifyRequest): boolean {
  const coding = headers['content-encoding']?.trim() ?? 'identity';
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1] ?? 'utf-8';
  return /^identity$/i.test(coding) && /^(utf-?8|us-ascii)$/i.test(charset);
}
