import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { sendJsonText } from '../json/send-json-text';

/** Serves the OpenAPI 3.1 document at `/openapi.json`; built when first asked for, so that starting stays quick. */
export function addOpenApiRoute(
  app: NestFastifyApplication,
  instance: FastifyInstance,
  about: { title: string; version: string },
): void {
  let text: Promise<string> | undefined;
  instance.get('/openapi.json', async (_request, reply) => {
    text ??= openApiText(app, about);
    sendJsonText(reply, await text);
    return reply;
  });
}

async function openApiText(
  app: NestFastifyApplication,
  { title, version }: { title: string; version: string },
): Promise<string> {
  const [{ DocumentBuilder, SwaggerModule }, { cleanupOpenApiDoc }] = await Promise.all([
    import('@nestjs/swagger'),
    import('nestjs-zod'),
  ]);
  const settings = new DocumentBuilder()
    .setTitle(title)
    .setVersion(version)
    .setOpenAPIVersion('3.1.0')
    .addBearerAuth();
  return JSON.stringify(cleanupOpenApiDoc(SwaggerModule.createDocument(app, settings.build())));
}
