import { isPersonas } from '@platform/personas';
import type { Personas } from '@platform/personas';
import { z } from 'zod';

/** Header `typ` of access tokens (RFC 9068). */
export const ACCESS_TOKEN_TYP = 'at+jwt';

const instantSeconds = z.int().min(0).max(253_402_300_799);
const identifier = z.int().min(0);
const text = z.string().max(1_000);

/** The claims without which no token is accepted, whoever issued it. Instants are whole seconds since 1970. */
export const registeredClaims = z.object({
  iss: text,
  aud: z.union([text, z.array(text).min(1).max(20)]),
  sub: z.string().min(1).max(512),
  jti: z.string().min(1).max(200),
  iat: instantSeconds,
  nbf: instantSeconds.optional(),
  exp: instantSeconds,
});
export type RegisteredClaims = z.output<typeof registeredClaims>;

/** Where an identity was found. */
const IDENTITY_TYPES = ['svc-personid', 'internal-legacy', 'service-provider'] as const;
export type IdentityType = (typeof IDENTITY_TYPES)[number];

const personas = z.custom<Personas>(isPersonas, 'must be a combination of persona bits');
const nullableText = text.nullish().transform((value) => value ?? null);
const nullableIdentifier = identifier.nullish().transform((value) => value ?? null);
const texts = z.array(text).default([]);

const identityClaims = {
  client_id: nullableText,
  personId: nullableIdentifier,
  userId: nullableIdentifier,
  name: nullableText,
  roles: texts,
  facilities: z.array(identifier).default([]),
  groups: texts,
  /** Names of the claims that did not fit and are missing here: treat them as unknown, not as empty. */
  overflow: texts,
};

/** A revocation of a person or user must reach every token of theirs, so a token has to name whom it speaks for. */
function namesItsIdentity(claims: {
  identityType: IdentityType;
  personId: number | null;
  userId: number | null;
}): boolean {
  if (claims.identityType === 'svc-personid') return claims.personId !== null;
  return claims.identityType !== 'internal-legacy' || claims.userId !== null;
}

/** The claims of an access token that auth-service issues. Unknown claims are dropped. */
export const accessTokenClaims = registeredClaims
  .extend({
    ...identityClaims,
    auth_time: instantSeconds,
    identityType: z.enum(IDENTITY_TYPES),
    personas,
  })
  .refine(namesItsIdentity, 'must name the person or user it was issued for');
export type AccessTokenClaims = z.output<typeof accessTokenClaims>;

/** Claims of a legacy issuer's token: what it does not say is read as "nothing granted". */
export const legacyTokenClaims = registeredClaims
  .extend({
    ...identityClaims,
    auth_time: instantSeconds.optional(),
    identityType: z.enum(IDENTITY_TYPES).optional(),
    personas: personas.default(0),
  })
  .transform((claims): AccessTokenClaims => ({
    ...claims,
    auth_time: claims.auth_time ?? claims.iat,
    identityType: claims.identityType ?? (claims.personId === null ? 'internal-legacy' : 'svc-personid'),
  }))
  .refine(namesItsIdentity, 'must name the person or user it was issued for');
