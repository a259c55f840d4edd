import { userNameKey } from '../identity/identity';

/** A user name of one part: hosts (`host/…`), administrators (`…/admin`) and escaped names are not people. */
const PRINCIPAL = /^([^@/\\\s\p{Cc}\p{Cs}]{1,256})@([^@]{1,255})$/u;

/**
 * The key by which the internal store maps a Windows account to a user: `<folded user name>@<realm>`. Names fold like user names,
 * because Windows tickets carry them as they were typed; realms are compared exactly.
 * @param principal `user@REALM`
 * @returns null for what is no user of `realm`
 */
export function windowsAccountKey(principal: string, realm: string): string | null {
  const [, user, principalRealm] = PRINCIPAL.exec(principal) ?? [];
  if (user === undefined || principalRealm !== realm) return null;
  return `${userNameKey(user)}@${realm}`;
}

/** The text of a header that holds UTF-8; null when it does not. Node reads header bytes as Latin-1. */
export function utf8HeaderText(value: string): string | null {
  const bytes = Buffer.from(value, 'latin1');
  const text = bytes.toString('utf8');
  return Buffer.from(text, 'utf8').equals(bytes) ? text : null;
}
