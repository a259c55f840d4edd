import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';

/** Time of issue of the tokens built here. */
export const ISSUED_AT = new Date('2026-03-01T12:00:00Z');
export const ISSUED_AT_SECONDS = ISSUED_AT.getTime() / 1_000;

export const ISSUER = 'https://auth.example.test';
export const LEGACY_ISSUER = 'https://legacy.example.test';
export const AUDIENCE = 'platform';
export const HMAC_SECRET = Buffer.alloc(32, 0x61);
export const LEGACY_SECRET = Buffer.alloc(32, 0x62);
export const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
export const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });

export const CLAIMS = {
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'personid:1001',
  jti: '0d9a3f52-7a61-4c5e-9b33-1f1f0a4c8d11',
  sid: '5b1f0f0e-9f5c-4f0b-8a55-6f1f2f3f4f5f',
  iat: ISSUED_AT_SECONDS,
  nbf: ISSUED_AT_SECONDS,
  exp: ISSUED_AT_SECONDS + 24 * 60 * 60,
  client_id: 'demo-backend',
  auth_time: ISSUED_AT_SECONDS,
  identityType: 'svc-personid',
  personId: 1001,
  name: 'Carl Customer',
  personas: 2,
  roles: ['Reader'],
  facilities: [501, 502],
  groups: ['Dispatch'],
};

export interface TokenParts {
  header?: Record<string, unknown> | string;
  claims?: Record<string, unknown> | string;
  /** Returns the third part of the token for the text to sign. */
  signature?: (signed: string) => string;
}

export const hs256 =
  (secret: Buffer = HMAC_SECRET) =>
  (signed: string): string =>
    createHmac('sha256', secret).update(signed).digest('base64url');

export const rs256 =
  (key: KeyObject = rsa.privateKey) =>
  (signed: string): string =>
    sign('sha256', Buffer.from(signed), key).toString('base64url');

export const es256 =
  (key: KeyObject = ec.privateKey, dsaEncoding: 'ieee-p1363' | 'der' = 'ieee-p1363') =>
  (signed: string): string =>
    sign('sha256', Buffer.from(signed), { key, dsaEncoding }).toString('base64url');

/**
 * Builds a valid HS256 token of our issuer, with overrides. A string replaces the whole JSON text of header
 * or claims.
 */
export function token({ header = {}, claims = {}, signature = hs256() }: TokenParts = {}): string {
  const head =
    typeof header === 'string'
      ? header
      : JSON.stringify({ alg: 'HS256', kid: 'hs-1', typ: 'at+jwt', ...header });
  const body = typeof claims === 'string' ? claims : JSON.stringify({ ...CLAIMS, ...claims });
  const signed = `${encode(head)}.${encode(body)}`;
  return `${signed}.${signature(signed)}`;
}

export const rs256Token = (parts: TokenParts = {}): string =>
  token({ signature: rs256(), ...parts, header: { alg: 'RS256', kid: 'rs-1', ...(parts.header as object) } });

export const es256Token = (parts: TokenParts = {}): string =>
  token({ signature: es256(), ...parts, header: { alg: 'ES256', kid: 'es-1', ...(parts.header as object) } });

export function encode(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}
