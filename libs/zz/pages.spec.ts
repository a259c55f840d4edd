import Fastify from 'fastify';
import { readFileSync } from 'node:fs';
import { addDocsPage } from '/tmp/wt/openapi/libs/service-defaults/src/open-api/docs-page';
it('serves', async () => {
  for (const [i, n] of ['auth','settings','task'].entries()) {
    const app = Fastify({ routerOptions: { ignoreTrailingSlash: true } });
    addDocsPage(app as never, JSON.parse(readFileSync(`/tmp/wt/openapi/docs/openapi/${n}-service.json`,'utf8')).info.title);
    app.get('/openapi.json', (_q, r) => r.type('application/json').send(readFileSync(`/tmp/wt/openapi/docs/openapi/${n}-service.json`)));
    await app.listen({ port: 8101 + i, host: '127.0.0.1' });
  }
  await new Promise((r) => setTimeout(r, 1500_000));
}, 1600_000);
