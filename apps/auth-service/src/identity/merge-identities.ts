import { combinePersonas } from '@platform/personas';
import { uniteAuthority } from './authority';
import type { Identity, IdentityRecord, Resolution, Subject } from './identity';
import { formatSubject } from './identity';

/**
 * Identifiers that the request requires. A record or a merged identity with a different value is not a match.
 */
export interface ExplicitIdentifiers {
  personId?: number | null;
  userId?: number | null;
}

/**
 * Merges the stores' records into one identity. Personas, roles, facilities and groups are united; the name
 * comes from the first store that has one. Fails closed: unlinked records or contradictory links are
 * ambiguous, and one disabled record disables the identity.
 * @param records in the order of the stores, with all records reachable by links: an incomplete list would
 * merge into a different identity
 */
export function mergeIdentities(
  records: readonly IdentityRecord[],
  explicit: ExplicitIdentifiers = {},
): Resolution {
  const [meant, ...others] = (records.length === 1 ? [records] : linkedRecords(records)).filter(
    (linked) => !linked.some((record) => contradicts(record, explicit)),
  );
  if (meant === undefined) return { outcome: 'absent' };
  if (others.length > 0 || !isOnePerson(meant)) return { outcome: 'ambiguous' };
  if (meant.some((record) => record.disabled)) return { outcome: 'disabled' };
  const identity = unite(meant);
  if (lacks(identity, explicit)) return { outcome: 'absent' };
  return { outcome: 'resolved', identity };
}

/** Groups the records into sets that are linked directly or indirectly. */
function linkedRecords(records: readonly IdentityRecord[]): IdentityRecord[][] {
  return records.reduce<IdentityRecord[][]>((sets, record) => {
    const isLinked = (set: readonly IdentityRecord[]): boolean => set.some((other) => shares(record, other));
    return [...sets.filter((set) => !isLinked(set)), [...sets.filter(isLinked).flat(), record]];
  }, []);
}

function shares(one: IdentityRecord, other: IdentityRecord): boolean {
  return (
    (one.personId !== null && one.personId === other.personId) ||
    (one.userId !== null && one.userId === other.userId)
  );
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

/** Whether each store has at most one of the records, and each identifier at most one value. */
function isOnePerson(linked: readonly IdentityRecord[]): boolean {
  if (linked.length === 1) return true;
  const isUnique = (values: readonly (string | number | null)[]): boolean =>
    distinct(values.filter((value) => value !== null)).length <= 1;
  return (
    distinct(linked.map(({ store }) => store)).length === linked.length &&
    isUnique(linked.map(({ personId }) => personId)) &&
    isUnique(linked.map(({ userId }) => userId))
  );
}

function unite(records: readonly IdentityRecord[]): Identity {
  const personId = first(records, 'personId');
  const userId = first(records, 'userId');
  const name = nameIdentity(records, personId, userId);
  return {
    ...name,
    subjects: distinct([name.subject, ...records.flatMap(subjectsOf)]),
    userNameKeys: distinct(records.map((record) => record.userNameKey)),
    personId,
    userId,
    providerId: first(records, 'providerId'),
    name: first(records, 'name'),
    personas: combinePersonas(...records.map((record) => record.personas)),
    ...uniteAuthority(records),
  };
}

/** Names a person before a user before a technician, which is the order of the stores. */
function nameIdentity(
  records: readonly IdentityRecord[],
  personId: number | null,
  userId: number | null,
): Pick<Identity, 'identityType' | 'subject'> {
  if (personId !== null)
    return { identityType: 'svc-personid', subject: formatSubject({ kind: 'person', personId }) };
  if (userId !== null)
    return { identityType: 'internal-legacy', subject: formatSubject({ kind: 'user', userId }) };
  // Only technicians' records lack both identifiers.
  const { providerId, accountId: technicianId } = records[0]!;
  return {
    identityType: 'service-provider',
    subject: formatSubject({ kind: 'technician', providerId: providerId!, technicianId }),
  };
}

/** Returns the subjects that this account had, or would have, without its links. */
function subjectsOf({ store, accountId, personId, userId, providerId }: IdentityRecord): string[] {
  const subjects: Subject[] = [];
  if (personId !== null) subjects.push({ kind: 'person', personId });
  if (userId !== null) subjects.push({ kind: 'user', userId });
  if (store === 'service-providers' && providerId !== null)
    subjects.push({ kind: 'technician', providerId, technicianId: accountId });
  return subjects.map(formatSubject);
}

function first<Member extends keyof IdentityRecord>(
  records: readonly IdentityRecord[],
  member: Member,
): IdentityRecord[Member] | null {
  return records.find((record) => record[member] !== null)?.[member] ?? null;
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
