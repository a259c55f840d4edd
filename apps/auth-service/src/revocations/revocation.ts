import { isInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { z } from 'zod';

export type RevocationDomain = 'svc-personid' | 'internal-legacy' | 'jti';

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

const PATH_DOMAINS: Readonly<Record<string, RevocationDomain>> = {
  'svc-personid': 'svc-personid',
  'internal-legacy': 'internal-legacy',
  jti: 'jti',
  token: 'jti',
};

/** The domain that a path segment names (`token` is an alias of `jti`), or null. */
export function revocationDomain(segment: string): RevocationDomain | null {
  const key = segment.toLowerCase();
  return Object.hasOwn(PATH_DOMAINS, key) ? PATH_DOMAINS[key]! : null;
}

/** True for an identifier that the domain can hold: a canonical decimal for persons and users (one person must not have two
 *  spellings), 1–255 characters without controls or lone surrogates for token ids. */
export function isRevocationIdentifier(domain: RevocationDomain, identifier: string): boolean {
  if (domain === 'jti') return /^[^\p{Cc}\p{Cs}]{1,255}$/u.test(identifier);
  return /^[1-9]\d{0,15}$/.test(identifier) && Number.isSafeInteger(Number(identifier));
}

/** The spec's default of minDate: 2018-11-19. */
export const DEFAULT_MIN_DATE = new Date('2018-11-19T00:00:00Z');

const dateOrDateTime = z.union([z.iso.datetime({ offset: true, local: true }), z.iso.date()]);

/** The instant that a `minDate` query names: a date or a date-time with offset; without one it is UTC. A space where the `+` of
 *  an offset was decoded is understood. Null for anything else. */
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

/** Who may set revocations. `any-token` is what the specification says; `self-or-admin` allows callers only themselves. */
export type RevocationWritePolicy = 'any-token' | 'self-or-admin';

/** True when the policy lets this caller revoke this. */
export function mayRevoke(
  policy: RevocationWritePolicy,
  caller: Caller,
  domain: RevocationDomain,
  identifier: string,
): boolean {
  if (policy === 'any-token' || isInternalAdministrator(caller)) return true;
  switch (domain) {
    case 'jti':
      return identifier === caller.tokenId;
    case 'svc-personid':
      return caller.personId !== null && identifier === String(caller.personId);
    case 'internal-legacy':
      return caller.userId !== null && identifier === String(caller.userId);
  }
}

/** Why `mayRevoke` refuses, for the caller. */
export const REVOCATION_FORBIDDEN = 'You may revoke only yourself and your own tokens.';
