import { combinePersonas } from '@platform/personas';
import type { Identity, IdentityRecord, IdentityType, Resolution } from './identity';
import { formatSubject } from './identity';

/** Identifiers the caller insists on; a record or a merged identity that says otherwise is not the one meant. */
export interface ExplicitIdentifiers {
  personId?: number | null;
  userId?: number | null;
}

/** Makes one identity of what the stores, in their order, know: personas, roles, facilities and groups are united, the
 *  first store that knows a name gives it. Fails closed: two records that are not linked by a person or user identifier
 *  are two people (ambiguous), and one disabled record disables the whole identity. */
export function mergeIdentities(
  records: readonly IdentityRecord[],
  explicit: ExplicitIdentifiers = {},
): Resolution {
  const meant = records.filter((record) => !contradicts(record, explicit));
  if (meant.length === 0) return { outcome: 'absent' };
  if (!isOnePerson(meant)) return { outcome: 'ambiguous' };
  if (meant.some((record) => record.disabled)) return { outcome: 'disabled' };
  const identity = unite(meant);
  if (identity === null || lacks(identity, explicit)) return { outcome: 'absent' };
  return { outcome: 'resolved', identity };
}

function contradicts(record: IdentityRecord, explicit: ExplicitIdentifiers): boolean {
  return (
    differs(record.personId, explicit.personId ?? null) || differs(record.userId, explicit.userId ?? null)
  );
}

function differs(known: number | null, wanted: number | null): boolean {
  return known !== null && wanted !== null && known !== wanted;
}

function lacks(identity: Identity, explicit: ExplicitIdentifiers): boolean {
  const wantsPerson = explicit.personId ?? null;
  const wantsUser = explicit.userId ?? null;
  return (
    (wantsPerson !== null && identity.personId !== wantsPerson) ||
    (wantsUser !== null && identity.userId !== wantsUser)
  );
}

/** True when no store knows two records, no identifier has two values, and every record shares one with the records before it. */
function isOnePerson(records: readonly IdentityRecord[]): boolean {
  if (distinct(records.map((record) => record.store)).length < records.length) return false;
  const personIds = distinct(records.map((record) => record.personId).filter((id) => id !== null));
  const userIds = distinct(records.map((record) => record.userId).filter((id) => id !== null));
  if (personIds.length > 1 || userIds.length > 1) return false;
  if (records.length === 1) return true;
  // With at most one value per identifier, holding any identifier that another record holds too is being linked.
  return records.every((record) =>
    records.some(
      (other) =>
        other !== record && (bothHold(record, other, 'personId') || bothHold(record, other, 'userId')),
    ),
  );
}

function bothHold(one: IdentityRecord, other: IdentityRecord, identifier: 'personId' | 'userId'): boolean {
  return one[identifier] !== null && other[identifier] !== null;
}

function unite(records: readonly IdentityRecord[]): Identity | null {
  const personId = first(records.map((record) => record.personId));
  const userId = first(records.map((record) => record.userId));
  const providerId = first(records.map((record) => record.providerId));
  const name = first(records.map((record) => record.name));
  const named = nameIdentity({ personId, userId, providerId, name });
  if (named === null) return null;
  return {
    ...named,
    personId,
    userId,
    providerId,
    name,
    personas: combinePersonas(...records.map((record) => record.personas)),
    roles: distinct(records.flatMap((record) => record.roles)).sort(),
    facilities: distinct(records.flatMap((record) => record.facilities)).sort((a, b) => a - b),
    groups: distinct(records.flatMap((record) => record.groups)).sort(),
  };
}

/** A person is named before a user, a user before a technician: the order of the stores. */
function nameIdentity(
  known: Pick<Identity, 'personId' | 'userId' | 'providerId' | 'name'>,
): { identityType: IdentityType; subject: string } | null {
  if (known.personId !== null) {
    const subject = formatSubject({ kind: 'person', personId: known.personId });
    return { identityType: 'svc-personid', subject };
  }
  if (known.userId !== null) {
    return {
      identityType: 'internal-legacy',
      subject: formatSubject({ kind: 'user', userId: known.userId }),
    };
  }
  if (known.providerId === null || known.name === null) return null;
  return technicianName(known.providerId, known.name);
}

/** What a token calls a technician who has no person or user account. */
export function technicianName(
  providerId: number,
  name: string,
): { identityType: IdentityType; subject: string } {
  return {
    identityType: 'service-provider',
    subject: formatSubject({ kind: 'technician', providerId, name }),
  };
}

function first<T>(values: readonly (T | null)[]): T | null {
  return values.find((value) => value !== null) ?? null;
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
