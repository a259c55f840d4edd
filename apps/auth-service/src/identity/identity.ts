import type { Personas } from '@platform/personas';
import type { HeldAuthority, StoredAuthority } from './authority';

/** The stores that know users, in order of precedence. */
export type IdentityStoreName = 'person-directory' | 'internal-legacy' | 'service-providers';

/** A store, named by the prefix of its variables (`PERSON_DIRECTORY_DATABASE_URL`, …). */
export type Store = 'PERSON_DIRECTORY' | 'INTERNAL_LEGACY' | 'SERVICE_PROVIDERS';

/** The kind of identity that a token names: claim `identityType`. */
type IdentityType = 'svc-personid' | 'internal-legacy' | 'service-provider';

/**
 * One store's record of one user. Identifiers that belong to other stores are links to the same user's
 * records there.
 */
export interface IdentityRecord {
  store: IdentityStoreName;
  /** Identifies the account within its store. */
  accountId: number;
  /** The user name, folded by `userNameKey`. */
  userNameKey: string;
  personId: number | null;
  userId: number | null;
  providerId: number | null;
  name: string | null;
  personas: Personas;
  roles: StoredAuthority<string>[];
  facilities: StoredAuthority<number>[];
  groups: StoredAuthority<string>[];
  disabled: boolean;
}

/** A user, merged from the records of all stores. */
export interface Identity extends HeldAuthority {
  identityType: IdentityType;
  /** The `sub` claim; see `formatSubject`. */
  subject: string;
  /**
   * Every subject that this user's tokens may carry: `subject`, and the subjects that the accounts had before
   * they were linked.
   */
  subjects: string[];
  /** The folded user names of all accounts. Empty for a technician without an account. */
  userNameKeys: string[];
  personId: number | null;
  userId: number | null;
  providerId: number | null;
  name: string | null;
  personas: Personas;
}

/** How to look up a user. */
export type IdentityQuery =
  | { by: 'user-name'; userName: string }
  | { by: 'person'; personId: number }
  | { by: 'user'; userId: number }
  /** The account of a technician. */
  | { by: 'technician'; technicianId: number }
  /** The internal user to whom a Windows account is mapped; see `windowsAccountKey`. */
  | { by: 'windows-account'; accountKey: string };

/** The outcome of a look-up in all stores. Any outcome but `resolved` refuses the user. */
export type Resolution =
  | { outcome: 'resolved'; identity: Identity }
  | { outcome: 'absent' }
  | { outcome: 'disabled' }
  | { outcome: 'ambiguous' };

/**
 * Folds a user name to lower case and Unicode NFC for comparison. Folded here rather than in SQL, because
 * lower() depends on the collation.
 */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase();
}

/**
 * The user that a `sub` claim names. `technician-name` is a technician without an account: no store can look
 * them up again.
 */
export type Subject =
  | { kind: 'person'; personId: number }
  | { kind: 'user'; userId: number }
  | { kind: 'technician'; providerId: number; technicianId: number }
  | { kind: 'technician-name'; providerId: number; name: string };

/**
 * Formats a `sub` claim: `personid:<n>`, `userid:<n>`, `technician:<provider>:<account id>` or
 * `technician:<provider>:<name>`.
 */
export function formatSubject(subject: Subject): string {
  switch (subject.kind) {
    case 'person':
      return `personid:${String(subject.personId)}`;
    case 'user':
      return `userid:${String(subject.userId)}`;
    case 'technician':
      return `technician:${String(subject.providerId)}:${String(subject.technicianId)}`;
    case 'technician-name':
      return `technician:${String(subject.providerId)}:${subject.name}`;
  }
}

const IDENTIFIER = /^(?:0|[1-9]\d{0,15})$/;
const SUBJECT = /^(personid|userid|technician):(\d+)(?::([^]+))?$/;

/** Parses a `sub` claim. Returns null for anything that `formatSubject` cannot produce. */
export function parseSubject(text: string): Subject | null {
  const [, kind, identifier = '', name] = SUBJECT.exec(text) ?? [];
  const id = parseIdentifier(identifier);
  if (id === null) return null;
  if (kind === 'technician') return name === undefined ? null : technicianSubject(id, name);
  if (name !== undefined) return null;
  return kind === 'personid' ? { kind: 'person', personId: id } : { kind: 'user', userId: id };
}

/**
 * Whether a subject has the form `legacy:<issuer>:<sub>`. Tokens of legacy issuers that name neither a person
 * nor a user have such a subject.
 */
export function isLegacySubject(text: string): boolean {
  return /^legacy:.*[^:]:./.test(text);
}

/**
 * Interprets the part of a technician's subject after the provider. A number is always an account id, so no
 * technician can be named by a number.
 */
export function technicianSubject(providerId: number, accountOrName: string): Subject {
  const technicianId = parseIdentifier(accountOrName);
  return technicianId === null
    ? { kind: 'technician-name', providerId, name: accountOrName }
    : { kind: 'technician', providerId, technicianId };
}

function parseIdentifier(text: string): number | null {
  return IDENTIFIER.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null;
}
