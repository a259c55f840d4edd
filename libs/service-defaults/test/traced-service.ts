import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { runProcess } from '@platform/testing';
import type { RunningProcess } from '@platform/testing';

/** The traced service as a process, and what is behind it. */
export interface TracedService {
  readonly running: RunningProcess;
  /** Headers of the requests that came in behind it. */
  readonly downstream: IncomingHttpHeaders[];
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

export async function startTracedService(env: Record<string, string> = {}): Promise<TracedService> {
  const downstream: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    downstream.push(request.headers);
    response.writeHead(404).end();
  });
  const url = `http://127.0.0.1:${String(await closedPort())}`;
  const running = await runProcess({
    entry: join(__dirname, 'traced-process.cjs'),
    env: {
      PORT: new URL(url).port,
      METRICS_PORT: '0',
      LOG_LEVEL: 'info',
      DOWNSTREAM_URL: await listen(server),
      ...env,
    },
    readyUrl: `${url}/health/ready`,
  });
  return {
    running,
    downstream,
    get: async (path, headers = {}) => {
      const response = await fetch(`${url}${path}`, { headers });
      await response.clone().arrayBuffer();
      return response;
    },
    close: async () => {
      if (running.child.exitCode === null) await running.stop();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A port that nobody listens at. */
export async function closedPort(): Promise<number> {
  const server = createServer();
  const { port } = new URL(await listen(server));
  await new Promise((resolve) => server.close(resolve));
  return Number(port);
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}
