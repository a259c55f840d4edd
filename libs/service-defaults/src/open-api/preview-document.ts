import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { ServiceDefinition } from '../application/service-definition';
import { ServiceDefaultsModule } from '../service-defaults.module';
import { buildDocument } from './build-document';
import type { OpenApiDocument } from './document';

class PreviewModule {}

/** The API document of a service that is not started: nothing is connected to, no provider is made. For tests and tools.
 *  @throws {Error} for a service without words about its API */
export async function previewDocument(definition: ServiceDefinition): Promise<OpenApiDocument> {
  const { api, config, name, title, rootModule } = definition;
  if (api === undefined) throw new Error(`${name} says nothing about its API`);
  const defaults = ServiceDefaultsModule.forRoot({ config, name });
  const app = await NestFactory.create(
    { module: PreviewModule, imports: [defaults, rootModule] },
    new FastifyAdapter(),
    { preview: true, logger: false, abortOnError: false },
  );
  try {
    return await buildDocument(app, { title, version: config.SERVICE_VERSION, api });
  } finally {
    await app.close();
  }
}
