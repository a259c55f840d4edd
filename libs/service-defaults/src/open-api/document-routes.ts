import type { INestApplication } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { sendJsonText } from '../json/send-json-text';
import { buildDocument } from './build-document';
import type { DocumentSubject } from './build-document';
import { addDocsPage } from './docs-page';

/** Serves the OpenAPI document at `/openapi.json`, and a page that shows it at `/docs`. It is made when first asked for: starting stays quick. */
export function addDocumentRoutes(
  app: INestApplication,
  instance: FastifyInstance,
  subject: DocumentSubject,
): void {
  let text: Promise<string> | undefined;
  instance.get('/openapi.json', async (_request, reply) => {
    text ??= buildDocument(app, subject).then((document) => JSON.stringify(document));
    sendJsonText(reply, await text);
    return reply;
  });
  addDocsPage(instance, subject.title);
}
