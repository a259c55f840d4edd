import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type { SigningKey } from '../keys/compact-jws';
import { signCompact } from '../keys/compact-jws';

/** `typ` of refresh tokens: together with a key of their own it keeps them apart from access tokens. */
export const REFRESH_TOKEN_TYP = 'rt+jwt';
/** 365 days. Source: authentication spec, Limits. */
export const REFRESH_TOKEN_LIFETIME_SECONDS = 365 * 24 * 60 * 60;
const MAX_CHARACTERS = 16_384;
const CLOCK_TOLERANCE_SECONDS = 30;

const refreshTokenClaims = z.object({
  iss: z.string(),
  aud: z.string(),
  sub: z.string().min(1),
  jti: z.uuid(),
  iat: z.int(),
  exp: z.int(),
  client_id: z.string(),
});

/** What a refresh token says; everything else about it is in its row. Times are seconds since 1970. */
export type RefreshTokenClaims = z.output<typeof refreshTokenClaims>;

/** The refresh token for these claims. Deterministic, so that a retry can be given the very same token again. */
export function signRefreshToken(key: SigningKey, claims: RefreshTokenClaims): string {
  const { iss, aud, sub, jti, iat, exp, client_id } = claims;
  return signCompact(key, JSON.stringify({ iss, aud, sub, jti, iat, exp, client_id }));
}

/** The claims of a refresh token that this service signed, whatever its age. Null for anything else.
 *  Header and signature are compared as text, so one token has exactly one accepted spelling.
 *  @param keys every key still accepted, HS256 */
export function readRefreshToken(
  token: string,
  keys: readonly SigningKey[],
  issuer: string,
): RefreshTokenClaims | null {
  if (token.length > MAX_CHARACTERS) return null;
  const parts = token.split('.');
  const [header, payload, signature] = parts;
  if (parts.length !== 3 || payload === undefined || signature === undefined) return null;
  const key = keys.find((each) => each.encodedHeader === header);
  if (key === undefined) return null;
  const expected = createHmac('sha256', key.key)
    .update(`${key.encodedHeader}.${payload}`)
    .digest('base64url');
  const presented = Buffer.from(signature);
  if (presented.length !== expected.length || !timingSafeEqual(Buffer.from(expected), presented)) return null;
  const parsed = refreshTokenClaims.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString()));
  if (!parsed.success || parsed.data.iss !== issuer || parsed.data.aud !== issuer) return null;
  return parsed.data;
}

/** True once a refresh token has passed its `exp` by more than the clock tolerance of 30 s. */
export function isRefreshTokenExpired(claims: RefreshTokenClaims, now: Date): boolean {
  return now.getTime() / 1_000 > claims.exp + CLOCK_TOLERANCE_SECONDS;
}
