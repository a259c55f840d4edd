import { createServer } from 'node:http';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { TEST_TOKEN_CONFIG, testAccessToken } from './access-token';

export interface HttpDouble {
  readonly url: string;
  /** Closes the server and all its connections. */
  close(): Promise<void>;
}

/** Starts a server on a free port of 127.0.0.1. */
export async function startHttpDouble(respond: RequestListener): Promise<HttpDouble> {
  const server = createServer(respond);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const SECRET = Buffer.from('a-secret-of-at-least-32-bytes-for-tests').toString('base64url');

/** A stand-in for auth-service with the routes that other services use, on a real socket. */
export interface AuthServiceDouble extends HttpDouble {
  /** Body of GET /auth/revocations. */
  revocations: { domain: string; identifier: string; revocationDate: string }[];
  /** Body of GET /auth/me; null makes it respond 503. */
  identity: { facilities: number[]; personas?: number; facilityPersonas?: number[] } | null;
  /** The last received `traceparent`, by path. */
  traceparents: Record<string, string>;
}

export async function startAuthServiceDouble(): Promise<AuthServiceDouble> {
  const respond = (request: IncomingMessage, response: ServerResponse): void => {
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
  };
  const double: AuthServiceDouble = {
    ...(await startHttpDouble(respond)),
    revocations: [],
    identity: null,
    traceparents: {},
  };
  return double;
}

/**
 * Returns the variables that make a service trust the auth-service at `url` and the tokens of
 * `testAccessToken`.
 */
export function authServiceVariables(url: string): Record<string, string> {
  return {
    TOKEN_ISSUER: TEST_TOKEN_CONFIG.issuer,
    TOKEN_AUDIENCE: TEST_TOKEN_CONFIG.audience,
    ACCESS_TOKEN_HMAC_KEY: TEST_TOKEN_CONFIG.hmacKey.toString('base64url'),
    ACCESS_TOKEN_HMAC_KEY_ID: TEST_TOKEN_CONFIG.hmacKeyId,
    AUTH_SERVICE_URL: url,
    SERVICE_APPLICATION_KEY: 'platform-services',
    SERVICE_SHARED_SECRET: SECRET,
    SERVICE_USER_NAME: 'svc.platform',
  };
}
