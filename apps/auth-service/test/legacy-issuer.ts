import { createHmac, randomBytes, randomUUID } from 'node:crypto';

export const LEGACY_ISSUER = 'https://legacy.platform.test';
const AUDIENCE = 'old';
const KEY = { kid: 'legacy', secret: randomBytes(32).toString('base64url') };

/** A replica's settings for the legacy issuer. */
export const LEGACY_ENVIRONMENT = {
  LEGACY_ISSUERS: JSON.stringify([{ issuer: LEGACY_ISSUER, audience: AUDIENCE, keys: [KEY] }]),
};

/** Returns a token of the legacy issuer. @param claims override the default claims */
export function legacyToken(claims: object): string {
  const iat = Math.floor(Date.now() / 1_000);
  const registered = { iss: LEGACY_ISSUER, aud: AUDIENCE, sub: 'gina', jti: randomUUID() };
  const text = [
    { alg: 'HS256', kid: KEY.kid },
    { ...registered, iat, exp: iat + 600, ...claims },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const key = Buffer.from(KEY.secret, 'base64url');
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}
