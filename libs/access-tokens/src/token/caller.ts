import { hasPersona, isPersonas, Persona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import { z } from 'zod';

/** Header `typ` of access tokens (RFC 9068). */
export const ACCESS_TOKEN_TYP = 'at+jwt';

const instantSeconds = z.int().min(0).max(253_402_300_799);
const identifier = z.int().min(0);
/** Excludes U+0000, which PostgreSQL cannot store, from claims that tokens are looked up by. */
const withoutNul = /^[^\0]*$/;
const text = z.string().max(1_000);

/** Claims that every token must have, whoever issued it. Times are whole seconds since 1970. */
export const registeredClaims = z.object({
  iss: text,
  aud: z.union([text, z.array(text).min(1).max(20)]),
  sub: z.string().min(1).max(512).regex(withoutNul),
  jti: z.string().min(1).max(200).regex(withoutNul),
  iat: instantSeconds,
  nbf: instantSeconds.optional(),
  exp: instantSeconds,
});
export type RegisteredClaims = z.output<typeof registeredClaims>;

/** The directory that an identity comes from. */
const IDENTITY_TYPES = ['svc-personid', 'internal-legacy', 'service-provider'] as const;
type IdentityType = (typeof IDENTITY_TYPES)[number];

const personas = z.custom<Personas>(isPersonas, 'must be a combination of persona bits');
const nullableText = text.nullish().transform((value) => value ?? null);
const nullableIdentifier = identifier.nullish().transform((value) => value ?? null);
const texts = z.array(text).default([]);

const identityClaims = {
  client_id: text
    .regex(withoutNul)
    .nullish()
    .transform((value) => value ?? null),
  personId: nullableIdentifier,
  userId: nullableIdentifier,
  name: nullableText,
  roles: texts,
  facilities: z.array(identifier).default([]),
  /** For each of `facilities`, in the same order, the personas for which it is held. */
  facilityPersonas: z
    .array(personas)
    .optional()
    .transform((value) => value ?? null),
  groups: texts,
  /** Names of claims that did not fit into the token. Treat these claims as unknown, not as empty. */
  overflow: texts,
};

/** Checks that a token names its person or user, so that a revocation of that person or user covers it. */
function namesItsIdentity(claims: {
  identityType: IdentityType;
  personId: number | null;
  userId: number | null;
}): boolean {
  if (claims.identityType === 'svc-personid') return claims.personId !== null;
  return claims.identityType !== 'internal-legacy' || claims.userId !== null;
}

/**
 * Checks that `facilityPersonas`, if present, has one entry per facility: which personas hold a facility must
 * not be guessed.
 */
function pairsItsFacilities(claims: {
  facilities: readonly number[];
  facilityPersonas: readonly Personas[] | null;
}): boolean {
  return claims.facilityPersonas === null || claims.facilityPersonas.length === claims.facilities.length;
}
const BADLY_PAIRED = 'must have a facilityPersonas as long as its facilities, or none';

/** Claims of an access token that auth-service issues. Unknown claims are dropped. */
export const accessTokenClaims = registeredClaims
  .extend({
    ...identityClaims,
    auth_time: instantSeconds,
    /** Session id. Each sign-in starts a session; every token exchanged or refreshed from it keeps the id. */
    sid: z
      .string()
      // Lower case only, because revocations are looked up by this spelling.
      .regex(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
      .nullish()
      .transform((value) => value ?? null),
    identityType: z.enum(IDENTITY_TYPES),
    personas,
  })
  .refine(namesItsIdentity, 'must name the person or user it was issued for')
  .refine(pairsItsFacilities, BADLY_PAIRED);
export type AccessTokenClaims = z.output<typeof accessTokenClaims>;

/**
 * Returns the subject of a legacy issuer's token, built from the identifiers that we share with that issuer.
 * The token's own `sub` may equal one of our subjects but mean another person. So a token without a shared
 * identifier gets a subject that none of ours can equal.
 */
function legacySubject({ iss, sub, personId, userId }: LegacyIdentity): string {
  if (personId !== null) return `personid:${String(personId)}`;
  return userId === null ? `legacy:${iss}:${sub}` : `userid:${String(userId)}`;
}

type LegacyIdentity = Pick<RegisteredClaims, 'iss' | 'sub'> & {
  personId: number | null;
  userId: number | null;
};

/** Claims of a legacy issuer's token. A missing claim grants nothing. */
export const legacyTokenClaims = registeredClaims
  .extend({
    ...identityClaims,
    auth_time: instantSeconds.optional(),
    identityType: z.enum(IDENTITY_TYPES).optional(),
    personas: personas.default(0),
  })
  .transform((claims): AccessTokenClaims => ({
    ...claims,
    sub: legacySubject(claims),
    // Session ids of other issuers have no meaning here.
    sid: null,
    auth_time: claims.auth_time ?? claims.iat,
    identityType: claims.identityType ?? (claims.personId === null ? 'internal-legacy' : 'svc-personid'),
  }))
  .refine(namesItsIdentity, 'must name the person or user it was issued for')
  .refine(pairsItsFacilities, BADLY_PAIRED);

/**
 * The sender of a request, according to the verified access token. Frozen, because one object is shared by
 * all requests with that token.
 */
export interface Caller {
  /** The access token itself, for calls on the caller's behalf. Never log it. */
  readonly token: string;
  /**
   * `personid:<n>`, `userid:<n>` or `technician:<provider>:<account id or name>`. A legacy issuer's token
   * without person and user has `legacy:<issuer>:<its sub>`.
   */
  readonly subject: string;
  readonly tokenId: string;
  /**
   * The token's session (claim `sid`); null for tokens issued before sessions existed and for legacy issuers.
   */
  readonly sessionId: string | null;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  /** Time of the last authentication. Exchanging or refreshing a token does not change it. */
  readonly authTime: Date;
  /** Key of the application that requested the token. */
  readonly clientId: string | null;
  readonly identityType: IdentityType;
  readonly personId: number | null;
  readonly userId: number | null;
  readonly name: string | null;
  readonly personas: Personas;
  readonly roles: readonly string[];
  readonly facilities: readonly number[];
  /**
   * For each of `facilities`, in the same order, the personas for which it is held; null if the token does
   * not say. Use `facilitiesHeldFor` to evaluate it.
   */
  readonly facilityPersonas: readonly Personas[] | null;
  readonly groups: readonly string[];
  /**
   * Names of claims that did not fit into the token, e.g. `groups`. Deny access if the decision depends on
   * one of them.
   */
  readonly overflow: readonly string[];
}

/**
 * The role that makes a customer an internal administrator. Source: authentication spec, Authentication 2.
 */
export const CUSTOMER_GLOBAL_ADMINISTRATOR = 'CustomerGlobalAdministrator';

export function callerFromClaims(token: string, claims: AccessTokenClaims): Caller {
  return Object.freeze({
    token,
    subject: claims.sub,
    tokenId: claims.jti,
    sessionId: claims.sid,
    issuedAt: instant(claims.iat),
    expiresAt: instant(claims.exp),
    authTime: instant(claims.auth_time),
    clientId: claims.client_id,
    identityType: claims.identityType,
    personId: claims.personId,
    userId: claims.userId,
    name: claims.name,
    personas: claims.personas,
    roles: Object.freeze(claims.roles),
    facilities: Object.freeze(claims.facilities),
    facilityPersonas: claims.facilityPersonas && Object.freeze(claims.facilityPersonas),
    groups: Object.freeze(claims.groups),
    overflow: Object.freeze(claims.overflow),
  });
}

function instant(seconds: number): Date {
  return new Date(seconds * 1_000);
}

/**
 * Returns true for the persona InternalPartner or the role CustomerGlobalAdministrator. Source:
 * authentication spec, Authentication 2.
 */
export function isInternalAdministrator(caller: Pick<Caller, 'personas' | 'roles'>): boolean {
  return (
    hasPersona(caller.personas, Persona.InternalPartner) ||
    caller.roles.includes(CUSTOMER_GLOBAL_ADMINISTRATOR)
  );
}
