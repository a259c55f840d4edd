import type { Personas } from '@platform/personas';
import type { Identity } from '../identity/identity';
import { epochSecond } from './refresh-state';

/** 24 hours. Source: authentication spec, Limits. */
const ACCESS_TOKEN_LIFETIME_SECONDS = 24 * 60 * 60;
/** A token that grows past this many characters loses claims, so that it fits the headers of every server and proxy. */
const ACCESS_TOKEN_MAX_CHARACTERS = 6 * 1_024;

/** Everything an access token says, decided. `personas` are those granted, which may be fewer than the identity holds. */
export interface AccessGrant {
  identity: Identity;
  personas: Personas;
  clientId: string | null;
  authTime: Date;
  issuedAt: Date;
  tokenId: string;
}

/** The claims of an access token as they are written. Claims without a value are left out. */
export interface WrittenClaims {
  iss: string;
  aud: string;
  sub: string;
  jti: string;
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
  roles: string[];
  facilities: number[];
  groups: string[];
  /** Names of the claims that were emptied because the token would have been too long. */
  overflow?: ('groups' | 'facilities')[];
}

/** The claims that say `grant`. Source: docs/spec-gaps.md. */
export function accessTokenClaimsOf(grant: AccessGrant, issuer: string, audience: string): WrittenClaims {
  const { identity } = grant;
  const iat = epochSecond(grant.issuedAt);
  return {
    iss: issuer,
    aud: audience,
    sub: identity.subject,
    jti: grant.tokenId,
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
    roles: identity.roles,
    facilities: identity.facilities,
    groups: identity.groups,
  };
}

/** The claims as JSON text that keeps the token within the limit: `groups` are emptied first, then `facilities`, and
 *  `overflow` names what is missing, so that receivers refuse rather than guess.
 *  @param fixedCharacters length of the encoded header and signature */
export function fitClaims(
  claims: WrittenClaims,
  fixedCharacters: number,
  maxCharacters = ACCESS_TOKEN_MAX_CHARACTERS,
): string {
  const fits = (json: string): boolean => tokenCharacters(json, fixedCharacters) <= maxCharacters;
  const whole = JSON.stringify(claims);
  if (fits(whole)) return whole;
  const withoutGroups = JSON.stringify({ ...claims, groups: [], overflow: ['groups'] });
  if (fits(withoutGroups)) return withoutGroups;
  return JSON.stringify({ ...claims, groups: [], facilities: [], overflow: ['groups', 'facilities'] });
}

/** Characters of a compact token with this payload: the parts in base64url and the two dots. */
function tokenCharacters(payloadJson: string, fixedCharacters: number): number {
  return fixedCharacters + 2 + Math.ceil((Buffer.byteLength(payloadJson) * 4) / 3);
}
