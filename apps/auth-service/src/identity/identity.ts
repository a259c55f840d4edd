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

/** One family of legacy identities. An absent user is an empty list or null; an outage throws, so that it can never be
 *  mistaken for "no such user". */
export interface IdentityStore {
  readonly name: IdentityStoreName;
  /** Records that match; more than one means the store itself cannot tell who is meant. */
  find(query: IdentityQuery): Promise<IdentityRecord[]>;
  /** The password of the enabled account with this user name. */
  findPassword(userName: string): Promise<StoredPassword | null>;
  /** Replaces a password hash unless it has changed since it was read. */
  upgradePassword(password: StoredPassword, newHash: string): Promise<void>;
}

/** User names compare without case and in one Unicode form; folded here because SQL's lower() depends on the collation. */
export function userNameKey(userName: string): string {
  return userName.normalize('NFC').toLowerCase();
}
