import { createHmac, randomUUID } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { APPLICATION_SECRETS, localUrl, type PlatformSettings, TOKEN_AUDIENCE } from './environments.ts';

/** An application of the development identities. */
export const DEMO_BACKEND = {
  applicationKey: 'demo-backend',
  sharedSecret: APPLICATION_SECRETS['demo-backend'],
} as const;

/** Parts of a JSON request besides its method and URL. */
export interface JsonCall {
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Returns the headers and body of a JSON request, as fetch takes them. */
export function jsonRequest({ token, body, headers }: JsonCall): {
  headers: Record<string, string>;
  body?: string;
} {
  return {
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}

/**
 * Sends a request and returns its response's JSON.
 * @throws {Error} with the start of the response unless its status is 2xx
 */
export async function callJson<T>(method: string, url: string, call: JsonCall = {}): Promise<T> {
  const response = await fetch(url, { method, ...jsonRequest(call) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${url} responded ${response.status}: ${text.slice(0, 300)}`);
  return JSON.parse(text) as T;
}

/** Returns an access token of a user, on the authority of a trusted application. */
export async function signIn(
  authUrl: string,
  userName: string,
  persona: number,
  application: object = DEMO_BACKEND,
): Promise<string> {
  const url = `${authUrl}/auth/token/trust-simple`;
  const body = { ...application, persona, userName };
  return (await callJson<{ accessToken: string }>('POST', url, { body })).accessToken;
}

/** Sends a request without a body and returns the status of the response. */
export async function statusOf(method: string, url: string, token: string): Promise<number> {
  const response = await fetch(url, { method, ...jsonRequest({ token }) });
  await response.arrayBuffer();
  return response.status;
}

/** Claims in addition to, or instead of, the default ones of an internal partner. */
type Claims = Readonly<Record<string, unknown>>;

/** Returns a valid HS256 access token of these services, signed with their configured key. */
export function makeAccessToken({ ports, secret }: PlatformSettings, claims: Claims = {}): string {
  const now = Math.floor(Date.now() / 1_000);
  const header = { alg: 'HS256', kid: 'access-development', typ: 'at+jwt' } as const;
  const payload = {
    iss: localUrl(ports.auth),
    aud: TOKEN_AUDIENCE,
    sub: 'userid:9001',
    jti: randomUUID(),
    iat: now,
    nbf: now,
    exp: now + 86_400,
    client_id: 'demo-backend',
    auth_time: now,
    identityType: 'internal-legacy',
    userId: 9001,
    name: 'Ivy Internal',
    personas: 1,
    roles: [],
    facilities: [],
    groups: ['Dispatch'],
    ...claims,
  };
  const key = Buffer.from(secret('access-token-hmac-key'), 'base64url');
  return jwt.sign(payload, key, { header });
}

/** Signed fields of a trust request, in the order of signing. */
const SIGNED_FIELDS = [
  ...(['requestTimestampUtc', 'applicationKey', 'persona', 'userName'] as const),
  ...(['serviceProviderID', 'name', 'userAccountID', 'personID'] as const),
];
type TrustFields = Readonly<Partial<Record<(typeof SIGNED_FIELDS)[number], string | number | null>>>;

/**
 * Returns the `authenticationCode` of a trust request: HMAC-SHA256, in padded base64, over nine lines joined
 * by LF. Implemented here instead of imported, because the tour plays a foreign backend that has only the
 * documentation.
 */
export function signTrustRequest(fields: TrustFields, sharedSecret: string): string {
  const lines = ['TRUST-HMAC-SHA256', ...SIGNED_FIELDS.map((name) => fields[name] ?? '')];
  return createHmac('sha256', sharedSecret).update(lines.join('\n'), 'utf8').digest('base64');
}
