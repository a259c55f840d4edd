import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { testAccessToken } from '@platform/testing';

/** The two routes of auth-service that a validating service uses, on a real socket. */
export interface AuthServiceDouble {
  url: string;
  /** What GET /auth/revocations answers from now on. */
  revocations: { domain: string; identifier: string; revocationDate: string }[];
  close(): Promise<void>;
}

/** Starts it on a free port. */
export async function startAuthServiceDouble(): Promise<AuthServiceDouble> {
  const revocations: AuthServiceDouble['revocations'] = [];
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    const path = new URL(request.url ?? '/', 'http://auth').pathname;
    const bodies: Record<string, unknown> = {
      '/auth/token/trust': { wasSuccessful: true, accessToken: testAccessToken() },
      '/auth/revocations': revocations,
    };
    request.resume();
    response.writeHead(path in bodies ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(bodies[path] ?? {}));
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    revocations,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
