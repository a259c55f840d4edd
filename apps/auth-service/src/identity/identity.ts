import type { Personas } from '@platform/personas';
import type { HeldAuthority, StoredAuthority } from './authority';

/** The stores that know users, in the order in which they are asked. */
export type IdentityStoreName = 'person-directory' | 'internal-legacy' | 'service-providers';

/** The kind of identity a token names: claim `identityType`. */
type IdentityType = 'svc-personid' | 'internal-legacy' | 'service-provider';

/**
 * What one store knows of one user. Identifiers of other stores are links: they say who this is elsewhere.
 */
export interface IdentityRecord {
  store: IdentityStoreName;
  /** Identifies the account within its store. */
  accountId: number;
  /** Folded; see `userNameKey`. */
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

/** A user as all stores together know them. */
export interface Identity extends HeldAuthority {
  identityType: IdentityType;
  /** The `sub` claim; see `formatSubject`. */
  subject: string;
  /**
   * Every subject that its tokens may name: `subject`, and those that its accounts have had before they were
   * linked.
   */
  subjects: string[];
  /** Of every account, folded. None: a technician without an account. */
  userNameKeys: string[];
  personId: number | null;
  userId: number | null;
  providerId: number | null;
  name: string | null;
  personas: Personas;
}

/** How a user is asked for. */
export type IdentityQuery =
  | { by: 'user-name'; userName: string }
  | { by: 'person'; personId: number }
  | { by: 'user'; userId: number }
  /** A technician's account. */
  | { by: 'technician'; technicianId: number }
  /** The internal user to whom a Windows account is mapped; see `windowsAccountKey`. */
  | { by: 'windows-account'; accountKey: string };

/** The outcome of asking all stores. Everything but `resolved` refuses the user. */
export type Resolution =
  | { outcome: 'resolved'; identity: Identity }
  | { outcome: 'absent' }
  | { outcome: 'disabled' }
  | { outcome: 'ambiguous' };

/**
 * User names compare without case and in one Unicode form; folded here because SQL's lower() depends on the
 * collation.
 */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase();
}

/**
 * Whom a `sub` claim names. A technician without an account is known by name only, and no store finds them
 * again.
 */
export type Subject =
  | { kind: 'person'; personId: number }
  | { kind: 'user'; userId: number }
  | { kind: 'technician'; providerId: number; technicianId: number }
  | { kind: 'technician-name'; providerId: number; name: string };

/**
 * The `sub` claim of a subject: `personid:<n>`, `userid:<n>`, `technician:<provider>:<account id>` or
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

/** Reads a `sub` claim back. Null for anything `formatSubject` does not write. */
export function parseSubject(text: string): Subject | null {
  const [, kind, identifier = '', name] = SUBJECT.exec(text) ?? [];
  const id = parseIdentifier(identifier);
  if (id === null) return null;
  if (kind === 'technician') return name === undefined ? null : technicianSubject(id, name);
  if (name !== undefined) return null;
  return kind === 'personid' ? { kind: 'person', personId: id } : { kind: 'user', userId: id };
}

/** Whether a subject is that of a legacy issuer's token without person and user: `legacy:<issuer>:<its
 *  sub>`. */
export function isLegacySubject(text: string): boolean {
  return /^legacy:.*[^:]:./.test(text);
}

/**
 * The technician of a provider by what a subject says of them: a number is an account, so nobody can be named
 * by one.
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
