import { isInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { z } from 'zod';
import { isLegacySubject, parseSubject } from '../identity/identity';

/** What the specification knows how to revoke. */
export const SPECIFIED_DOMAINS = ['svc-personid', 'internal-legacy', 'jti'] as const;
export const REVOCATION_DOMAINS = [...SPECIFIED_DOMAINS, 'sid', 'sub', 'client_id'] as const;
export type RevocationDomain = (typeof REVOCATION_DOMAINS)[number];

/** What a revocation is found by. */
export interface RevocationKey {
  domain: RevocationDomain;
  identifier: string;
}

/** One entry of the registry, as the wire has it. Source: authentication spec, Revocation. */
export interface Revocation extends RevocationKey {
  /** ISO 8601 with offset, to the millisecond. */
  revocationDate: string;
}

const PATH_DOMAINS: ReadonlyMap<string, RevocationDomain> = new Map([
  ...REVOCATION_DOMAINS.map((domain) => [domain, domain] as const),
  ['token', 'jti'],
]);

/** What a path segment may be, for messages. */
export const DOMAIN_CHOICE = [...PATH_DOMAINS.keys()].join(', ');

/** The domain that a path segment names (`token` is an alias of `jti`), or null. */
export function revocationDomain(segment: string): RevocationDomain | null {
  return PATH_DOMAINS.get(segment.toLowerCase()) ?? null;
}

const TEXT = /^[^\p{Cc}\p{Cs}]{1,255}$/u;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * True for an identifier in the one spelling that the domain has for it: what is revoked must not have two.
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
 * An identifier in the one spelling that tokens have it in: the UUIDs of tokens and sessions in lower case
 * (RFC 9562 section 4).
 */
export function canonicalIdentifier(domain: RevocationDomain, identifier: string): string {
  const lowerCase = identifier.toLowerCase();
  return (domain === 'jti' || domain === 'sid') && isUuid(lowerCase) ? lowerCase : identifier;
}

/** True for a UUID in lower case. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** The spec's default of minDate: 2018-11-19. */
export const DEFAULT_MIN_DATE = new Date('2018-11-19T00:00:00Z');

const dateOrDateTime = z.union([z.iso.datetime({ offset: true, local: true }), z.iso.date()]);

/**
 * The instant that a `minDate` query names: a date or a date-time with offset; without one it is UTC. A space
 * where the `+` of an offset was decoded is understood. Null for anything else.
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

/** A row of the registry as the wire has it. */
export function toWire({
  domain,
  identifier,
  revocationDate,
}: RevocationKey & { revocationDate: Date }): Revocation {
  return { domain, identifier, revocationDate: formatRevocationDate(revocationDate) };
}

/** A revocation date as the wire has it: ISO 8601 with an offset. */
export function formatRevocationDate(instant: Date): string {
  return instant.toISOString().replace('Z', '+00:00');
}

/**
 * Who may set the specification's revocations. `any-token` is what it says; `self-or-admin` allows callers
 * only themselves.
 */
export type RevocationWritePolicy = 'any-token' | 'self-or-admin';

/** Why a caller may revoke something. `by-policy`: the policy allows it to any token; it has a quota. */
export type Entitlement = 'administrator' | 'own' | 'by-policy';

/**
 * Why this caller may revoke this; null: the caller may not. The policy does not widen what the specification
 * does not know.
 * @param isOwner whether the token or session that is named is known to be the caller's
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

/** True when the caller's own token says that a revocation would be about the caller. */
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

/** Domains whose revocations cover tokens by when they were issued. */
const DATED_DOMAINS = ['svc-personid', 'internal-legacy', 'sub', 'client_id'] as const;

/**
 * True for a revocation that covers tokens by when they were issued, not one token or session whenever it was
 * issued.
 */
export function isDated(domain: RevocationDomain): boolean {
  return DATED_DOMAINS.some((each) => each === domain);
}

/** Why a revocation is refused, for the caller. */
export const REVOCATION_FORBIDDEN: Readonly<Record<RevocationWritePolicy, string>> = {
  'any-token': 'Only internal administrators may revoke sessions and subjects of others, and applications.',
  'self-or-admin': 'You may revoke only yourself, your own sessions and your own tokens.',
};
export const SERVICE_FORBIDDEN =
  'Only internal administrators, and the service itself, may revoke the tokens of a service.';
