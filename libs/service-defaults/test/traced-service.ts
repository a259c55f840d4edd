import type { IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { findFreePorts, runProcess, startHttpDouble } from '@platform/testing';
import type { RunningProcess } from '@platform/testing';

/** The traced service as a process, and the service downstream of it. */
export interface TracedService {
  readonly running: RunningProcess;
  /** Headers of the requests that the downstream service received. */
  readonly downstream: IncomingHttpHeaders[];
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

export async function startTracedService(env: Record<string, string> = {}): Promise<TracedService> {
  const downstream: IncomingHttpHeaders[] = [];
  const downstreamDouble = await startHttpDouble((request, response) => {
    downstream.push(request.headers);
    response.writeHead(404).end();
  });
  const [port] = (await findFreePorts(1)) as [number];
  const url = `http://127.0.0.1:${String(port)}`;
  const running = await runProcess({
    entry: join(__dirname, 'traced-process.cjs'),
    env: {
      PORT: String(port),
      METRICS_PORT: '0',
      LOG_LEVEL: 'info',
      DOWNSTREAM_URL: downstreamDouble.url,
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
      await downstreamDouble.close();
    },
  };
}
