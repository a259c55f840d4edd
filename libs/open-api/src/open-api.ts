import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ServiceDefaultsModule, sendJsonText } from '@platform/service-defaults';
import type { ApiDescription, ServiceDefinition } from '@platform/service-defaults';
import type { FastifyInstance } from 'fastify';
import { buildDocument } from './build-document';
import type { AboutApi } from './build-document';
import { addDocsPage } from './docs-page';
import type { OpenApiDocument } from './document';

type Subject = Pick<AboutApi, 'title' | 'version'>;

/** The OpenAPI document of a service: `api` of its ServiceDefinition. */
export class OpenApi implements ApiDescription {
  constructor(private readonly words: Omit<AboutApi, keyof Subject>) {}

  build(app: INestApplication, subject: Subject): Promise<OpenApiDocument> {
    return buildDocument(app, { ...subject, ...this.words });
  }

  /** Serves the document at `/openapi.json`, and a page that shows it at `/docs`. It is made when first asked for: starting stays quick. */
  addRoutes(app: INestApplication, instance: FastifyInstance, subject: Subject): void {
    let text: Promise<string> | undefined;
    instance.get('/openapi.json', async (_request, reply) => {
      text ??= this.build(app, subject).then((document) => JSON.stringify(document));
      sendJsonText(reply, await text);
      return reply;
    });
    addDocsPage(instance, subject.title);
  }
}

class PreviewModule {}

/** The API document of a service that is not started: nothing is connected to, no provider is made. For tests and tools.
 *  @throws {Error} for a service without a description of its API */
export async function previewDocument(definition: ServiceDefinition): Promise<OpenApiDocument> {
  const { api, config, name, title, rootModule } = definition;
  if (!(api instanceof OpenApi)) throw new Error(`${name} does not describe its API`);
  const defaults = ServiceDefaultsModule.forRoot({ config, name });
  const app = await NestFactory.create(
    { module: PreviewModule, imports: [defaults, rootModule] },
    new FastifyAdapter(),
    { preview: true, logger: false, abortOnError: false },
  );
  try {
    return await api.build(app, { title, version: config.SERVICE_VERSION });
  } finally {
    await app.close();
  }
}
