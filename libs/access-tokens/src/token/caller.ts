import { Persona, hasPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { AccessTokenClaims, IdentityType } from './claims';

/** Who sent a request, as their verified access token says. One object serves every request with that token: it is frozen. */
export interface Caller {
  /** The access token itself, for calls on the caller's behalf. Never log it. */
  readonly token: string;
  /** `personid:<n>`, `userid:<n>` or `technician:<provider>:<name>`. */
  readonly subject: string;
  readonly tokenId: string;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  /** When the person last proved who they are; kept when tokens are exchanged or refreshed. */
  readonly authTime: Date;
  /** Key of the application that asked for the token. */
  readonly clientId: string | null;
  readonly identityType: IdentityType;
  readonly personId: number | null;
  readonly userId: number | null;
  readonly name: string | null;
  readonly personas: Personas;
  readonly roles: readonly string[];
  readonly facilities: readonly number[];
  readonly groups: readonly string[];
  /** Names of the claims that did not fit into the token, e.g. `groups`: fail closed when one of them decides. */
  readonly overflow: readonly string[];
}

/** The role that makes a customer an internal administrator. Source: authentication spec, Authentication 2. */
export const CUSTOMER_GLOBAL_ADMINISTRATOR = 'CustomerGlobalAdministrator';

/** The caller that verified claims describe. */
export function callerFromClaims(token: string, claims: AccessTokenClaims): Caller {
  return Object.freeze({
    token,
    subject: claims.sub,
    tokenId: claims.jti,
    issuedAt: instant(claims.iat),
    expiresAt: instant(claims.exp),
    authTime: instant(claims.auth_time),
    clientId: claims.client_id,
    identityType: claims.identityType,
    personId: claims.personId,
    userId: claims.userId,
    name: claims.name,
    personas: claims.personas,
    roles: Object.freeze(claims.roles),
    facilities: Object.freeze(claims.facilities),
    groups: Object.freeze(claims.groups),
    overflow: Object.freeze(claims.overflow),
  });
}

function instant(seconds: number): Date {
  return new Date(seconds * 1_000);
}

/** Persona InternalPartner, or the role CustomerGlobalAdministrator. Source: authentication spec, Authentication 2. */
export function isInternalAdministrator(caller: Pick<Caller, 'personas' | 'roles'>): boolean {
  return (
    hasPersona(caller.personas, Persona.InternalPartner) ||
    caller.roles.includes(CUSTOMER_GLOBAL_ADMINISTRATOR)
  );
}
