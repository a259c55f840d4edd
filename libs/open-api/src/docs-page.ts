import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { FastifyInstance, FastifyReply } from 'fastify';

/**
 * Allows only files of this service: no inline script, other host, frame or form. Inline styles are allowed
 * because Swagger UI uses them.
 */
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

/**
 * Adds `/docs`, a page that shows the document at `/openapi.json`. Its files come from an npm package and are
 * read on request.
 */
export function addDocsPage(instance: FastifyInstance, title: string): void {
  instance.get('/docs', (request, reply) => {
    // Relative addresses, so that the page works behind a proxy that adds a path.
    const inFolder = /^[^?]*\/(\?|$)/.test(request.raw.url ?? '');
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

/** Reads a file of swagger-ui-dist. Not cached, because people open the page seldom. */
function packageFile(name: string): Promise<Buffer> {
  return readFile(createRequire(__filename).resolve(`swagger-ui-dist/${name}`));
}

function cacheable(reply: FastifyReply, type: string): FastifyReply {
  return protect(reply).header('cache-control', 'public, max-age=3600').type(type);
}

function protect(reply: FastifyReply): FastifyReply {
  return reply.header('referrer-policy', 'no-referrer');
}

/**
 * Returns the HTML of the docs page.
 * @param inFolder true if the page was requested with a trailing slash, so that its relative addresses
 * resolve inside `/docs/`
 */
function docsPageHtml(title: string, inFolder: boolean): string {
  const docs = inFolder ? '' : 'docs/';
  const text = title.replace(/[&<>"]/g, (character) => `&#${String(character.charCodeAt(0))};`);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${text} · API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${docs}swagger-ui.css">
<link rel="stylesheet" href="${docs}page.css">
</head>
<body>
<div id="api" data-document="${inFolder ? '../' : ''}openapi.json"></div>
<noscript>This page needs JavaScript. The document itself is at openapi.json.</noscript>
<script src="${docs}swagger-ui.js"></script>
<script src="${docs}start.js"></script>
</body>
</html>
`;
}

/** Starts Swagger UI: operations by group, each with its examples, and schemas at the end. */
const START_SCRIPT = `const api = document.getElementById('api');
SwaggerUIBundle({
  url: api.dataset.document,
  domNode: api,
  validatorUrl: null,
  deepLinking: true,
  filter: true,
  displayRequestDuration: true,
  showCommonExtensions: true,
  syntaxHighlight: { theme: 'nord' },
});
`;

/** Styles that are plainer than Swagger UI's own and wide enough for tables. */
const PAGE_STYLE = `:root { color-scheme: light; --ink: #1c2530; --soft: #5b6775; --line: #dfe4ea; }
body { margin: 0; background: #f6f8fa; }
.swagger-ui :not(code, pre, code *, pre *) { font-family: system-ui, 'Segoe UI', Roboto, Arial, sans-serif; color: var(--ink); }
.swagger-ui .wrapper { max-width: 1180px; }
.swagger-ui .info { margin: 36px 0 20px; padding: 28px 36px; background: #fff; border: 1px solid var(--line); border-radius: 12px; }
.swagger-ui .info :is(p, li, td, th) { font-size: 15px; line-height: 1.55; }
.swagger-ui .info table { border-collapse: collapse; margin: 12px 0; }
.swagger-ui .info table :is(th, td, td:first-of-type) { padding: 6px 12px; border: 1px solid var(--line); text-align: left; }
.swagger-ui .info .markdown pre { background: #182230; border-radius: 8px; padding: 14px 16px; overflow-x: auto; }
.swagger-ui .info .markdown pre code { color: #e7edf5; background: none; padding: 0; white-space: pre; }
.swagger-ui .scheme-container { background: none; box-shadow: none; padding: 4px 0; }
.swagger-ui .opblock { border-radius: 8px; box-shadow: none; }
.swagger-ui .opblock .opblock-summary-description { color: var(--soft); font-size: 14px; }
.swagger-ui .response-col_links { display: none; }
`;
