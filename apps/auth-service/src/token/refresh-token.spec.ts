import { createSecretKey, randomUUID } from 'node:crypto';
import { signCompact, signingKey } from '../keys/compact-jws';
import {
  REFRESH_TOKEN_LIFETIME_SECONDS,
  REFRESH_TOKEN_TYP,
  isCutBySession,
  isRefreshTokenExpired,
  readRefreshToken,
  refreshTokenClaimsOf,
  signRefreshToken,
} from './token-claims';

const ISSUER = 'https://auth.example';
const secret = createSecretKey(Buffer.alloc(32, 7));
const key = signingKey('HS256', 'r1', secret, REFRESH_TOKEN_TYP);
const claims = {
  iss: ISSUER,
  aud: ISSUER,
  sub: 'personid:1001',
  jti: randomUUID(),
  sid: randomUUID(),
  iat: 1_000,
  exp: 2_000,
  client_id: 'billing-api',
};

describe('refresh tokens', () => {
  it('are read back as signed, and signing is deterministic', () => {
    const token = signRefreshToken(key, claims);
    expect(readRefreshToken(token, [key], ISSUER)).toEqual(claims);
    expect(signRefreshToken(key, { ...claims })).toBe(token);
  });

  it('are accepted without a session, as an earlier release signed them', () => {
    const { sid: _, ...older } = claims;
    expect(readRefreshToken(signRefreshToken(key, older), [key], ISSUER)).toEqual(older);
  });

  it('name the user, application and session, and the times of issue and expiry', () => {
    const token = {
      jti: claims.jti,
      subject: 'personid:1001',
      clientId: 'billing-api',
      sessionId: claims.sid,
      issuedAt: new Date(1_000_999),
      expiresAt: new Date(2_000_000),
    };
    expect(refreshTokenClaimsOf(token, ISSUER)).toEqual(claims);
    const [header = ''] = signRefreshToken(key, claims).split('.');
    expect(Buffer.from(header, 'base64url').toString()).toContain('"typ":"rt+jwt"');
  });

  it('are refused if their lifetime exceeds a year', () => {
    expect(REFRESH_TOKEN_LIFETIME_SECONDS).toBe(31_536_000);
    const oneYear = { ...claims, exp: claims.iat + REFRESH_TOKEN_LIFETIME_SECONDS };
    expect(readRefreshToken(signRefreshToken(key, oneYear), [key], ISSUER)).toEqual(oneYear);
    const longer = { ...claims, exp: oneYear.exp + 1 };
    expect(readRefreshToken(signRefreshToken(key, longer), [key], ISSUER)).toBeNull();
  });

  it('show whether the age of their session has shortened them', () => {
    expect(isCutBySession({ ...claims, iat: 1_767_312_000, exp: 1_767_313_000 })).toBe(true);
    expect(isCutBySession({ ...claims, exp: claims.iat + REFRESH_TOKEN_LIFETIME_SECONDS })).toBe(false);
  });

  const token = signRefreshToken(key, claims);
  const [header, payload, signature] = token.split('.') as [string, string, string];
  const otherHeader = Buffer.from('{"alg":"none","kid":"r1","typ":"rt+jwt"}').toString('base64url');
  it.each([
    ['nothing', ''],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${token}.`],
    ['another header', `${otherHeader}.${payload}.${signature}`],
    ['no signature', `${header}.${payload}.`],
    ['a padded signature', `${token}=`],
    [
      'stray bits in the last character',
      token.slice(0, -1) + String.fromCharCode(token.charCodeAt(token.length - 1) + 1),
    ],
    ['another payload', `${header}.${Buffer.from('{}').toString('base64url')}.${signature}`],
    [
      'a letter of the signature 256 code points on',
      `${token.slice(0, -1)}${String.fromCharCode(256 + token.charCodeAt(token.length - 1))}`,
    ],
    ['non-ASCII text', `${header}.${payload}.${'ü'.repeat(43)}`],
    ['a signed token of 20,000 characters', signRefreshToken(key, { ...claims, sub: 'x'.repeat(15_000) })],
    ['an access token', signCompact(signingKey('HS256', 'r1', secret, 'at+jwt'), JSON.stringify(claims))],
    ['another issuer', signRefreshToken(key, { ...claims, iss: 'https://other.example' })],
    ['another audience', signRefreshToken(key, { ...claims, aud: 'platform' })],
  ])('refuses %s', (_, text) => {
    expect(readRefreshToken(text, [key], ISSUER)).toBeNull();
  });

  it('expire, with half a minute of tolerance', () => {
    expect(isRefreshTokenExpired(claims, new Date(2_030_000))).toBe(false);
    expect(isRefreshTokenExpired(claims, new Date(2_030_001))).toBe(true);
  });
});
