/** A person whom the identity provider can sign in. */
export interface ExternalAccount {
  /** Stable and meaningless outside this provider; the platform keys external identities on (issuer, subject). */
  subject: string;
  login: string;
  name: string;
  email: string;
}

/** Three people the platform knows, and one it does not. Everybody's password is the development identities' one. */
const EXTERNAL_ACCOUNTS: readonly ExternalAccount[] = [
  { subject: 'external-ivy', login: 'ivy.internal', name: 'Ivy Internal', email: 'ivy@example.test' },
  { subject: 'external-carl', login: 'carl.customer', name: 'Carl Customer', email: 'carl@example.test' },
  { subject: 'external-dora', login: 'dora.disabled', name: 'Dora Disabled', email: 'dora@example.test' },
  { subject: 'external-nora', login: 'nora.nobody', name: 'Nora Nobody', email: 'nora@example.test' },
];

/** The account of `login`, matched without regard to case. */
export function findAccountByLogin(login: string): ExternalAccount | null {
  return EXTERNAL_ACCOUNTS.find((account) => account.login === login.trim().toLowerCase()) ?? null;
}

export function findAccountBySubject(subject: string): ExternalAccount | null {
  return EXTERNAL_ACCOUNTS.find((account) => account.subject === subject) ?? null;
}
