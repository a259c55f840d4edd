import { formatSubject } from '../identity/identity';
import { isRevocationIdentifier } from '../revocations/revocation';

/** Whose sessions: a subject's, or an internal user's, whatever subject their tokens name. */
export type SessionOwner = { subject: string } | { userId: number };

/** The domains of revocations by whose owner sessions can be listed. */
export const OWNER_DOMAINS = ['svc-personid', 'internal-legacy', 'sub'] as const;

/** Whose sessions a domain and an identifier name; null when they name nobody properly. */
export function sessionOwner(name: string, identifier: string): SessionOwner | null {
  const domain = OWNER_DOMAINS.find((each) => each === name);
  if (domain === undefined || !isRevocationIdentifier(domain, identifier)) return null;
  if (domain === 'sub') return { subject: identifier };
  const id = Number(identifier);
  return domain === 'internal-legacy'
    ? { userId: id }
    : { subject: formatSubject({ kind: 'person', personId: id }) };
}
