import { createHmac, randomUUID } from 'node:crypto';
import type { PlatformSettings } from './environments.ts';
import { localUrl } from './environments.ts';

/** Claims that a benchmark's caller has over the usual ones of an internal partner. */
export type Claims = Readonly<Record<string, unknown>>;

/** A genuine HS256 access token of these services, signed with their configured key. */
export function makeAccessToken({ ports, secret }: PlatformSettings, claims: Claims = {}): string {
  const now = Math.floor(Date.now() / 1_000);
  const header = { alg: 'HS256', kid: 'access-development', typ: 'at+jwt' };
  const payload = {
    iss: localUrl(ports.auth),
    aud: 'property-platform',
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
  const signed = [header, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const key = Buffer.from(secret('access-token-hmac-key'), 'base64url');
  return `${signed}.${createHmac('sha256', key).update(signed).digest('base64url')}`;
}
