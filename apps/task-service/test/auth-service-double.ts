import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { testAccessToken } from '@platform/testing';

/** The routes of auth-service that the task service uses, on a real socket. */
export interface AuthServiceDouble {
  url: string;
  /** What GET /auth/revocations answers from now on. */
  revocations: { domain: string; identifier: string; revocationDate: string }[];
  /** What GET /auth/me answers; null answers 503. */
  identity: { facilities: number[] } | null;
  /** The last `traceparent` that came in, by path. */
  traceparents: Record<string, string>;
  close(): Promise<void>;
}

/** Starts it on a free port. */
export async function startAuthServiceDouble(): Promise<AuthServiceDouble> {
  const double: AuthServiceDouble = {
    url: '',
    revocations: [],
    identity: null,
    traceparents: {},
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const server = createServer((request: IncomingMessage, response: ServerResponse): void => {
    const path = new URL(request.url ?? '/', 'http://auth').pathname;
    const bodies: Record<string, unknown> = {
      '/auth/token/trust': { wasSuccessful: true, accessToken: testAccessToken() },
      '/auth/revocations': double.revocations,
      '/auth/me': double.identity,
    };
    double.traceparents[path] = String(request.headers['traceparent']);
    request.resume();
    response.writeHead(bodies[path] ? 200 : 503, { 'content-type': 'application/json' });
    response.end(JSON.stringify(bodies[path] ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  double.url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  return double;
}
