import { Persona, hasPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { Application } from '../applications/application';
import { userNameKey } from '../identity/identity';
import type { Identity } from '../identity/identity';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';

/**
 * The personas that a flow requests.
 * - `exactly`: all of the given personas, or a rejection (trust flows);
 * - `within`: the given personas that the user still holds (refresh and bearer: never more than before);
 * - `login`: the personas that the user holds. InternalPartner from a linked account is included only on
 *   request.
 */
export type PersonaRequest =
  | { kind: 'exactly'; personas: Personas }
  | { kind: 'within'; personas: Personas }
  | { kind: 'login'; grantAsInternalPartner: boolean };

/**
 * Returns the personas that the token gets.
 * @throws {TokenRejected} AuthenticationFailed when the user does not hold the requested personas;
 * InvalidGrant when the application is permitted none of them
 */
export function grantPersonas(
  identity: Identity,
  request: PersonaRequest,
  application: Application | null,
): Personas {
  switch (request.kind) {
    case 'exactly':
      if (!hasPersona(identity.personas, request.personas)) throw notHeld('persona not held');
      return request.personas;
    case 'within': {
      const granted = identity.personas & request.personas;
      if (granted === Persona.None && request.personas !== Persona.None) throw notHeld('no persona left');
      // The application's permissions may have been reduced since the token was issued.
      return withinApplication(granted, application);
    }
    case 'login':
      return withinApplication(loginPersonas(identity, request.grantAsInternalPartner), application);
  }
}

/**
 * Returns the personas that a login grants. A person with a linked internal account gets InternalPartner only
 * on request; an internal user always gets it.
 */
function loginPersonas(identity: Identity, grantAsInternalPartner: boolean): Personas {
  const isInternalUser = identity.identityType === 'internal-legacy';
  return isInternalUser || grantAsInternalPartner
    ? identity.personas
    : identity.personas & ~Persona.InternalPartner;
}

function withinApplication(personas: Personas, application: Application | null): Personas {
  if (application === null) return personas;
  const granted = personas & application.allowedPersonas;
  if (granted === Persona.None && personas !== Persona.None) throw personaNotPermitted();
  return granted;
}

/**
 * Refuses personas and users that the application is not permitted to request. Runs before the user is looked
 * up, so the response reveals nothing about the user.
 * @throws {TokenRejected} InvalidGrant
 */
export function authoriseRequest(
  application: Application,
  { persona, userName }: { persona: Personas; userName: string },
): void {
  if (!hasPersona(application.allowedPersonas, persona)) throw personaNotPermitted();
  authoriseSubject(application, [userNameKey(userName)]);
}

/**
 * Refuses users outside the application's `allowedSubjects`.
 * @param userNameKeys user names that a store vouches for; empty for a technician without an account
 * @throws {TokenRejected} InvalidGrant
 */
export function authoriseSubject(application: Application | null, userNameKeys: readonly string[]): void {
  const allowed = application?.allowedSubjects ?? null;
  if (allowed === null || userNameKeys.some((each) => allowed.includes(each))) return;
  throw new TokenRejected(
    TokenRejectionReason.InvalidGrant,
    'Tokens for this user are not permitted to this application.',
  );
}

function personaNotPermitted(): TokenRejected {
  return new TokenRejected(
    TokenRejectionReason.InvalidGrant,
    'The requested persona is not permitted to this application.',
  );
}

function notHeld(privateDetail: string): TokenRejected {
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.', {
    stage: 'resolution',
    privateDetail,
  });
}
