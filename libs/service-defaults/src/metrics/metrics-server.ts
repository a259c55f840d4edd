import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { Registry } from 'prom-client';

/** Serves `GET /metrics` on a port of its own, so that it is never reachable where the service is. */
export async function startMetricsServer(registry: Registry, port: number, host: string): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.method === 'GET' && request.url === '/metrics') void scrape(registry, response);
    else response.writeHead(404).end();
  });
  server.listen(port, host);
  await once(server, 'listening');
  // Scraping must not keep a finished process alive.
  server.unref();
  return server;
}

async function scrape(registry: Registry, response: ServerResponse): Promise<void> {
  try {
    const text = await registry.metrics();
    response.writeHead(200, { 'content-type': registry.contentType }).end(text);
  } catch (error) {
    response
      .writeHead(500, { 'content-type': 'text/plain' })
      .end(`metrics failed: ${(error as Error).name}\n`);
  }
}
