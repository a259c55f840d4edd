import type { IncomingMessage, ServerResponse } from 'node:http';
import { TEST_TOKEN_CONFIG, testAccessToken } from './access-token';
import { startHttpDouble } from './http-double';
import type { HttpDouble } from './http-double';

const SECRET = Buffer.from('a-secret-of-at-least-32-bytes-for-tests').toString('base64url');

/** The routes of auth-service that other services use, on a real socket. */
export interface AuthServiceDouble extends HttpDouble {
  /** What GET /auth/revocations answers from now on. */
  revocations: { domain: string; identifier: string; revocationDate: string }[];
  /** What GET /auth/me answers; null answers 503. */
  identity: { facilities: number[] } | null;
  /** The last `traceparent` that came in, by path. */
  traceparents: Record<string, string>;
}

/** Starts it on a free port. */
export async function startAuthServiceDouble(): Promise<AuthServiceDouble> {
  const answer = (request: IncomingMessage, response: ServerResponse): void => {
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
    ...(await startHttpDouble(answer)),
    revocations: [],
    identity: null,
    traceparents: {},
  };
  return double;
}

/** The variables with which a service trusts the auth-service at `url` and the tokens of `testAccessToken`. */
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
