import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { sendJsonText, ServiceDefaultsModule } from '@platform/service-defaults';
import type { ApiDescription, ServiceDefinition } from '@platform/service-defaults';
import type { FastifyInstance } from 'fastify';
import { buildDocument } from './build-document';
import type { AboutApi } from './build-document';
import { addDocsPage } from './docs-page';
import type { OpenApiDocument } from './schemas';

type Subject = Pick<AboutApi, 'title' | 'version'>;

/** Describes the API of a service; used as `api` of its ServiceDefinition. */
export class OpenApi implements ApiDescription {
  constructor(private readonly words: Omit<AboutApi, keyof Subject>) {}

  build(app: INestApplication, subject: Subject): Promise<OpenApiDocument> {
    return buildDocument(app, { ...subject, ...this.words });
  }

  /**
   * Serves the document at `/openapi.json` and a page that shows it at `/docs`; `/` redirects to the page.
   * The document is built on the first request, so that it does not slow down the start.
   */
  addRoutes(app: INestApplication, instance: FastifyInstance, subject: Subject): void {
    let text: Promise<string> | undefined;
    instance.get('/openapi.json', async (_request, reply) => {
      text ??= this.build(app, subject).then((document) => JSON.stringify(document));
      sendJsonText(reply, await text);
      return reply;
    });
    addDocsPage(instance, subject.title);
    instance.get('/', (_request, reply) => void reply.redirect('/docs'));
  }
}

class PreviewModule {}

/**
 * Builds the API document of a service without starting it: connects to nothing and creates no provider. For
 * tests and tools.
 * @throws {Error} for a service that does not describe its API
 */
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

/** Markdown on how to get an access token, for the descriptions of services that need one. */
export const GETTING_A_TOKEN = `## Getting a token

Request a token from the authentication service, and send its \`accessToken\` with every request. With a platform in
development (\`npm start\`, authentication service on port 3001):

\`\`\`sh
ACCESS_TOKEN=$(curl -sS http://127.0.0.1:3001/auth/token/user -H 'Content-Type: application/json' \\
  -d '{"user":"ivy.internal","password":"Demo-Passw0rd!"}' | sed 's/.*"accessToken":"\\([^"]*\\)".*/\\1/')
\`\`\`

\`ivy.internal\` is an InternalPartner; \`carl.customer\` (Customer, facilities 501 and 502) and \`olga.owner\` (Owner, facility 501)
have the same password. A token is valid for 24 hours.`;

const CONVENTIONS = `## Conventions

- Paths match in any letter case and with or without a trailing slash; parameters keep their case.
- Every error is a problem (RFC 9457, \`application/problem+json\`)_EXCEPT_. Its \`traceId\` identifies the request in the logs; send a
  W3C \`traceparent\` to choose it.
- Members may be added to responses at any time: ignore members that you do not know.
- Every GET operation also accepts HEAD.
- Instants are ISO 8601 with an offset.
- Before an operation is found, any address may respond: 400 (the request or its address cannot be read), 404, 405 with \`Allow\`, 408 (it
  did not arrive within 60 s), 414 (a path parameter of more than 4,096 characters), 431 (headers of more than 32 KiB).`;

/**
 * Returns the section on conventions, as Markdown.
 * @param exception text on errors that differ in some operations, e.g. `, but for …`; empty by default
 */
export function conventions(exception = ''): string {
  return CONVENTIONS.replace('_EXCEPT_', exception);
}
