import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Personas } from '@platform/personas';
import { SECOND_MS } from '@platform/time';
import { z } from 'zod';
import type { Authority, AuthorityClaim } from '../identity/authority';
import type { Identity } from '../identity/identity';
import { SIGNATURE_CHARACTERS, signCompact } from '../keys/compact-jws';
import type { SigningKey } from '../keys/compact-jws';
import { ACCESS_TOKEN_LIFETIME_SECONDS } from '../keys/signing-key';

/**
 * Maximum length of an access token, in characters, so that it fits the header limits of servers and proxies.
 */
const ACCESS_TOKEN_MAX_CHARACTERS = 6 * 1_024;

/**
 * The content of an access token. `personas` and `authority` are the granted ones, which may be less than the
 * identity holds.
 */
export interface AccessGrant {
  identity: Pick<Identity, 'identityType' | 'subject' | 'personId' | 'userId' | 'name'>;
  personas: Personas;
  authority: Authority;
  /** Claims of `authority` that hold less than the identity, because the exchanged token held less. */
  narrowed: readonly AuthorityClaim[];
  clientId: string | null;
  authTime: Date;
  issuedAt: Date;
  tokenId: string;
  sessionId: string;
}

/** The claims of an access token. Claims without a value are omitted. */
export interface WrittenClaims extends Authority {
  iss: string;
  aud: string;
  sub: string;
  jti: string;
  sid: string;
  iat: number;
  nbf: number;
  exp: number;
  client_id?: string;
  auth_time: number;
  identityType: Identity['identityType'];
  personId?: number;
  userId?: number;
  name?: string;
  personas: Personas;
  /** Names of the claims that were emptied because the token would have been too long. */
  overflow?: OverflowingClaim[];
}

/** Claims that are emptied if the token would be too long, in this order. */
const OVERFLOWING_CLAIMS = ['groups', 'facilities'] as const;
type OverflowingClaim = (typeof OVERFLOWING_CLAIMS)[number];

/** Maps a grant to the claims of its access token. Source: docs/spec-gaps.md. */
export function accessTokenClaimsOf(grant: AccessGrant, issuer: string, audience: string): WrittenClaims {
  const { identity } = grant;
  const iat = epochSecond(grant.issuedAt);
  return {
    iss: issuer,
    aud: audience,
    sub: identity.subject,
    jti: grant.tokenId,
    sid: grant.sessionId,
    iat,
    nbf: iat,
    exp: iat + ACCESS_TOKEN_LIFETIME_SECONDS,
    ...(grant.clientId === null ? {} : { client_id: grant.clientId }),
    auth_time: epochSecond(grant.authTime),
    identityType: identity.identityType,
    ...(identity.personId === null ? {} : { personId: identity.personId }),
    ...(identity.userId === null ? {} : { userId: identity.userId }),
    ...(identity.name === null ? {} : { name: identity.name }),
    personas: grant.personas,
    ...grant.authority,
  };
}

/** The signing keys, issuer and audience of tokens. */
export interface TokenKeys {
  access: SigningKey;
  refresh: SigningKey;
  issuer: string;
  audience: string;
}

export function signAccessToken({ access: key, issuer, audience }: TokenKeys, grant: AccessGrant): string {
  const claims = accessTokenClaimsOf(grant, issuer, audience);
  const fixedCharacters = key.encodedHeader.length + SIGNATURE_CHARACTERS[key.algorithm];
  return signCompact(key, fitClaims(claims, fixedCharacters, grant.narrowed));
}

/**
 * Serialises the claims so that the token stays within its maximum length. It empties `groups` first, then
 * `facilities` together with `facilityPersonas`. `overflow` names the emptied claims, so that receivers
 * refuse the request or query this service.
 * @param fixedCharacters length of the encoded header and signature
 * @param narrowed claims that `overflow` must not name: a query would return everything that the identity
 * holds, which is more than this token may carry
 */
export function fitClaims(
  claims: WrittenClaims,
  fixedCharacters: number,
  narrowed: readonly AuthorityClaim[] = [],
  maxCharacters = ACCESS_TOKEN_MAX_CHARACTERS,
): string {
  const fits = (json: string): boolean => tokenCharacters(json, fixedCharacters) <= maxCharacters;
  const whole = JSON.stringify(claims);
  if (fits(whole)) return whole;
  const withoutGroups = JSON.stringify(emptied(claims, ['groups'], narrowed));
  if (fits(withoutGroups)) return withoutGroups;
  return JSON.stringify(emptied(claims, OVERFLOWING_CLAIMS, narrowed));
}

function emptied(
  claims: WrittenClaims,
  names: readonly OverflowingClaim[],
  narrowed: readonly AuthorityClaim[],
): WrittenClaims {
  const remaining = { ...claims };
  for (const name of names) remaining[name] = [];
  // `facilityPersonas` pairs with `facilities` by index.
  if (names.includes('facilities')) delete remaining.facilityPersonas;
  const overflow = names.filter((name) => !narrowed.includes(name));
  return overflow.length === 0 ? remaining : { ...remaining, overflow };
}

/**
 * Returns the length of a compact token with this payload: header, payload and signature in base64url, two
 * dots.
 */
function tokenCharacters(payloadJson: string, fixedCharacters: number): number {
  return fixedCharacters + 2 + Math.ceil((Buffer.byteLength(payloadJson) * 4) / 3);
}

/**
 * `typ` of refresh tokens. This type and the separate keys prevent a refresh token from passing as an access
 * token.
 */
export const REFRESH_TOKEN_TYP = 'rt+jwt';
/** 365 days. Source: authentication spec, Limits. */
export const REFRESH_TOKEN_LIFETIME_SECONDS = 365 * 24 * 60 * 60;
const REFRESH_TOKEN_MAX_CHARACTERS = 16_384;
const CLOCK_TOLERANCE_SECONDS = 30;

const refreshTokenClaims = z.object({
  iss: z.string(),
  aud: z.string(),
  sub: z.string().min(1),
  jti: z.uuid(),
  /** Absent in tokens from a release without sessions. The row of the token has the session. */
  sid: z.guid().optional(),
  iat: z.int(),
  exp: z.int(),
  client_id: z.string(),
});

/** The claims of a refresh token; its row has all other data. Times are seconds since 1970. */
export type RefreshTokenClaims = z.output<typeof refreshTokenClaims>;

/** An unsigned refresh token: the values of its row, its user and its application. */
export interface RefreshTokenToSign {
  jti: string;
  subject: string;
  clientId: string;
  sessionId: string;
  issuedAt: Date;
  expiresAt: Date;
}

export function refreshTokenClaimsOf(token: RefreshTokenToSign, issuer: string): RefreshTokenClaims {
  return {
    iss: issuer,
    aud: issuer,
    sub: token.subject,
    jti: token.jti,
    sid: token.sessionId,
    iat: epochSecond(token.issuedAt),
    exp: epochSecond(token.expiresAt),
    client_id: token.clientId,
  };
}

/** Signs a refresh token. The result is deterministic, so that a retry gets exactly the same token. */
export function signRefreshToken(key: SigningKey, claims: RefreshTokenClaims): string {
  const { iss, aud, sub, jti, sid, iat, exp, client_id } = claims;
  return signCompact(key, JSON.stringify({ iss, aud, sub, jti, sid, iat, exp, client_id }));
}

/**
 * Returns the claims of a refresh token that this service signed, expired or not; null for anything else.
 * Header and signature are compared as text, so each token has exactly one accepted spelling.
 * @param keys every HS256 key that is still accepted
 */
export function readRefreshToken(
  token: string,
  keys: readonly SigningKey[],
  issuer: string,
): RefreshTokenClaims | null {
  if (token.length > REFRESH_TOKEN_MAX_CHARACTERS) return null;
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
  // This service signs no token with a longer lifetime. The check bounds tokens forged with a leaked key.
  return parsed.data.exp - parsed.data.iat <= REFRESH_TOKEN_LIFETIME_SECONDS ? parsed.data : null;
}

/** Returns true if a refresh token is past its `exp` by more than the clock tolerance of 30 s. */
export function isRefreshTokenExpired(claims: RefreshTokenClaims, now: Date): boolean {
  return now.getTime() / 1_000 > claims.exp + CLOCK_TOLERANCE_SECONDS;
}

/** Returns true if the maximum age of the session has shortened the token's lifetime. */
export function isCutBySession({ iat, exp }: RefreshTokenClaims): boolean {
  return exp - iat < REFRESH_TOKEN_LIFETIME_SECONDS;
}

/** Returns the whole seconds since 1970, rounded down. */
export function epochSecond(instant: Date): number {
  return Math.floor(instant.getTime() / SECOND_MS);
}
