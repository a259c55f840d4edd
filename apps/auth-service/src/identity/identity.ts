import type { Personas } from '@platform/personas';

/** The stores that know users, in the order in which they are asked. */
export type IdentityStoreName = 'person-directory' | 'internal-legacy' | 'service-providers';

/** The kind of identity a token names: claim `identityType`. */
export type IdentityType = 'svc-personid' | 'internal-legacy' | 'service-provider';

/** What one store knows of one user. Identifiers of other stores are links: they say who this is elsewhere. */
export interface IdentityRecord {
  store: IdentityStoreName;
  personId: number | null;
  userId: number | null;
  providerId: number | null;
  name: string | null;
  personas: Personas;
  roles: string[];
  facilities: number[];
  groups: string[];
  disabled: boolean;
}

/** A user as all stores together know them. */
export interface Identity extends Omit<IdentityRecord, 'store' | 'disabled'> {
  identityType: IdentityType;
  /** `personid:<n>`, `userid:<n>` or `technician:<provider>:<name>`. */
  subject: string;
}

/** How a user is asked for. */
export type IdentityQuery =
  | { by: 'user-name'; userName: string }
  | { by: 'person'; personId: number }
  | { by: 'user'; userId: number }
  /** The internal user to whom a Windows account is mapped; see `windowsAccountKey`. */
  | { by: 'windows-account'; accountKey: string };

/** The outcome of asking all stores. Everything but `resolved` refuses the user. */
export type Resolution =
  | { outcome: 'resolved'; identity: Identity }
  | { outcome: 'absent' }
  | { outcome: 'disabled' }
  | { outcome: 'ambiguous' };

/** A password as a store keeps it. `accountId` identifies the account within its store. */
export interface StoredPassword {
  store: IdentityStoreName;
  accountId: number;
  hash: string;
}

/** User names compare without case and in one Unicode form; folded here because SQL's lower() depends on the collation. */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase();
}

/** Whom a `sub` claim names. */
export type Subject =
  | { kind: 'person'; personId: number }
  | { kind: 'user'; userId: number }
  | { kind: 'technician'; providerId: number; name: string };

/** The `sub` claim of a subject: `personid:<n>`, `userid:<n>` or `technician:<provider>:<name>`. */
export function formatSubject(subject: Subject): string {
  switch (subject.kind) {
    case 'person':
      return `personid:${String(subject.personId)}`;
    case 'user':
      return `userid:${String(subject.userId)}`;
    case 'technician':
      return `technician:${String(subject.providerId)}:${subject.name}`;
  }
}

const SUBJECT = /^(personid|userid|technician):(0|[1-9]\d{0,15})(?::([^]+))?$/;

/** Reads a `sub` claim back. Null for anything `formatSubject` does not write. */
export function parseSubject(text: string): Subject | null {
  const match = SUBJECT.exec(text);
  if (!match) return null;
  const id = Number(match[2]);
  if (!Number.isSafeInteger(id)) return null;
  const name = match[3];
  if (match[1] === 'technician')
    return name === undefined ? null : { kind: 'technician', providerId: id, name };
  if (name !== undefined) return null;
  return match[1] === 'personid' ? { kind: 'person', personId: id } : { kind: 'user', userId: id };
}
