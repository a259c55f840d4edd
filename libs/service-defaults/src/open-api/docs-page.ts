import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { PAGE_STYLE, START_SCRIPT, docsPageHtml } from './docs-page-content';

/** Nothing but what this service serves: no inline script, no other host, no frame, no form. Swagger UI styles elements in place. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** Adds `/docs`, a page that shows the document at `/openapi.json`. Its files come from an npm package and are read when asked for. */
export function addDocsPage(instance: FastifyInstance, title: string): void {
  instance.get('/docs', (request, reply) => {
    // Relative addresses, so that the page works behind a proxy that adds a path.
    const inFolder = (request.raw.url ?? '').split('?', 1)[0]?.endsWith('/') ?? false;
    protect(reply)
      .header('content-security-policy', CONTENT_SECURITY_POLICY)
      .header('cache-control', 'no-cache')
      .type('text/html; charset=utf-8')
      .send(docsPageHtml(title, inFolder));
  });
  instance.get('/docs/start.js', (_request, reply) => cacheable(reply, SCRIPT).send(START_SCRIPT));
  instance.get('/docs/page.css', (_request, reply) => cacheable(reply, STYLE).send(PAGE_STYLE));
  instance.get('/docs/swagger-ui.css', async (_request, reply) =>
    cacheable(reply, STYLE).send(await packageFile('swagger-ui.css')),
  );
  instance.get('/docs/swagger-ui.js', async (_request, reply) =>
    cacheable(reply, SCRIPT).send(await packageFile('swagger-ui-bundle.js')),
  );
}

/** @param name a file of swagger-ui-dist. Not kept in memory: the page is for people, who ask seldom. */
function packageFile(name: string): Promise<Buffer> {
  return readFile(createRequire(__filename).resolve(`swagger-ui-dist/${name}`));
}

function cacheable(reply: FastifyReply, type: string): FastifyReply {
  return protect(reply).header('cache-control', 'public, max-age=3600').type(type);
}

function protect(reply: FastifyReply): FastifyReply {
  return reply.header('x-content-type-options', 'nosniff').header('referrer-policy', 'no-referrer');
}
