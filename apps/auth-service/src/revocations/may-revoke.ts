import { isInternalAdministrator } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import type { RevocationDomain } from './revocation';

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
