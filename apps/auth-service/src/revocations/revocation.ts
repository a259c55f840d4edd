import { isInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { z } from 'zod';
import { isLegacySubject, parseSubject } from '../identity/identity';

/** The revocation domains of the specification. */
export const SPECIFIED_DOMAINS = ['svc-personid', 'internal-legacy', 'jti'] as const;
export const REVOCATION_DOMAINS = [...SPECIFIED_DOMAINS, 'sid', 'sub', 'client_id'] as const;
export type RevocationDomain = (typeof REVOCATION_DOMAINS)[number];

/** The key of a revocation. */
export interface RevocationKey {
  domain: RevocationDomain;
  identifier: string;
}

/** One entry of the registry in API responses. Source: authentication spec, Revocation. */
export interface Revocation extends RevocationKey {
  /** ISO 8601 with offset, to the millisecond. */
  revocationDate: string;
}

const PATH_DOMAINS: ReadonlyMap<string, RevocationDomain> = new Map([
  ...REVOCATION_DOMAINS.map((domain) => [domain, domain] as const),
  ['token', 'jti'],
]);

/** The accepted values of the path's domain segment, for messages. */
export const DOMAIN_CHOICE = [...PATH_DOMAINS.keys()].join(', ');

/** Returns the domain that a path segment names (`token` is an alias of `jti`), or null. */
export function revocationDomain(segment: string): RevocationDomain | null {
  return PATH_DOMAINS.get(segment.toLowerCase()) ?? null;
}

const TEXT = /^[^\p{Cc}\p{Cs}]{1,255}$/u;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * Returns true if the identifier is in the domain's canonical spelling. Two spellings of one identifier would
 * be two revocations.
 */
export function isRevocationIdentifier(domain: RevocationDomain, identifier: string): boolean {
  switch (domain) {
    case 'svc-personid':
    case 'internal-legacy':
      return /^[1-9]\d{0,15}$/.test(identifier) && Number.isSafeInteger(Number(identifier));
    case 'sid':
      return isUuid(identifier);
    case 'sub':
      return TEXT.test(identifier) && (parseSubject(identifier) !== null || isLegacySubject(identifier));
    case 'jti':
    case 'client_id':
      return TEXT.test(identifier);
  }
}

/**
 * Returns the identifier in the spelling that tokens use: UUIDs of tokens and sessions in lower case (RFC
 * 9562 section 4), anything else unchanged.
 */
export function canonicalIdentifier(domain: RevocationDomain, identifier: string): string {
  const lowerCase = identifier.toLowerCase();
  return (domain === 'jti' || domain === 'sid') && isUuid(lowerCase) ? lowerCase : identifier;
}

/** Returns true for a lower-case UUID. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** The spec's default of minDate: 2018-11-19. */
export const DEFAULT_MIN_DATE = new Date('2018-11-19T00:00:00Z');

const dateOrDateTime = z.union([z.iso.datetime({ offset: true, local: true }), z.iso.date()]);

/**
 * Parses a `minDate` query: a date, or a date-time whose offset defaults to UTC. Accepts a space in place of
 * the offset's `+`, which URL decoding turns into a space. Returns null for anything else.
 */
export function parseMinDate(text: string): Date | null {
  const restored = text.trim().replace(/ (\d{2}:\d{2})$/, '+$1');
  const parsed = dateOrDateTime.safeParse(restored);
  if (!parsed.success) return null;
  const zoned =
    /(Z|[+-]\d{2}:\d{2})$/.test(parsed.data) || !parsed.data.includes('T') ? parsed.data : `${parsed.data}Z`;
  const instant = new Date(zoned);
  return Number.isNaN(instant.getTime()) ? null : instant;
}

/** Maps a row of the registry to its API representation. */
export function toWire({
  domain,
  identifier,
  revocationDate,
}: RevocationKey & { revocationDate: Date }): Revocation {
  return { domain, identifier, revocationDate: formatRevocationDate(revocationDate) };
}

/** Formats a revocation date for the API: ISO 8601 with an offset. */
export function formatRevocationDate(instant: Date): string {
  return instant.toISOString().replace('Z', '+00:00');
}

/**
 * Who may set revocations in the specification's domains. `any-token`: every caller, as the specification
 * says; `self-or-admin`: administrators, and callers for themselves.
 */
export type RevocationWritePolicy = 'any-token' | 'self-or-admin';

/** The grounds on which a caller may revoke. `by-policy`: `any-token` allows it; a quota applies. */
export type Entitlement = 'administrator' | 'own' | 'by-policy';

/**
 * Returns the caller's entitlement to set a revocation, or null. The policy `any-token` applies only to the
 * specification's domains.
 * @param isOwner true if the named token or session is known to be the caller's
 */
export function entitlementOf(
  policy: RevocationWritePolicy,
  caller: Caller,
  key: RevocationKey,
  isOwner: boolean,
): Entitlement | null {
  if (isInternalAdministrator(caller)) return 'administrator';
  if (isOwner || namesCaller(caller, key)) return 'own';
  const isSpecified = SPECIFIED_DOMAINS.some((each) => each === key.domain);
  return policy === 'any-token' && isSpecified ? 'by-policy' : null;
}

/** Returns true if the caller's token itself shows that the revocation concerns the caller. */
function namesCaller(caller: Caller, { domain, identifier }: RevocationKey): boolean {
  switch (domain) {
    case 'jti':
      return identifier === canonicalIdentifier(domain, caller.tokenId);
    case 'sid':
      return identifier === caller.sessionId;
    case 'svc-personid':
      return caller.personId !== null && identifier === String(caller.personId);
    case 'internal-legacy':
      return caller.userId !== null && identifier === String(caller.userId);
    case 'sub':
      return identifier === caller.subject;
    case 'client_id':
      return false;
  }
}

/** Domains whose revocations cover tokens by their issue date. */
const DATED_DOMAINS = ['svc-personid', 'internal-legacy', 'sub', 'client_id'] as const;

/**
 * Returns true if revocations of the domain cover tokens by their issue date; false if they cover one token
 * or session regardless of its date.
 */
export function isDated(domain: RevocationDomain): boolean {
  return DATED_DOMAINS.some((each) => each === domain);
}

/** Public details of a 403 for revocations, by policy. */
export const REVOCATION_FORBIDDEN: Readonly<Record<RevocationWritePolicy, string>> = {
  'any-token': 'Only internal administrators may revoke sessions and subjects of others, and applications.',
  'self-or-admin': 'You may revoke only yourself, your own sessions and your own tokens.',
};
export const SERVICE_FORBIDDEN =
  'Only internal administrators, and the service itself, may revoke the tokens of a service.';
