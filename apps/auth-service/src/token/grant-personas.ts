import { Persona, hasPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { Application } from '../applications/application';
import { userNameKey } from '../identity/identity';
import type { Identity } from '../identity/identity';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';

/** Which personas a flow asks for.
 *  - `exactly`: these, all of them (trust flows);
 *  - `within`: whatever the user still holds of these (refresh, bearer: never more than before);
 *  - `login`: what the user holds; InternalPartner that comes from a linked account only when asked for. */
export type PersonaRequest =
  | { kind: 'exactly'; personas: Personas }
  | { kind: 'within'; personas: Personas }
  | { kind: 'login'; grantAsInternalPartner: boolean };

/** The personas that go into the token.
 *  @throws {TokenRejected} AuthenticationFailed when the user does not hold what was asked for, InvalidGrant when the application may
 *    have none of it */
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
      // The application's permission may have been narrowed since.
      return withinApplication(granted, application);
    }
    case 'login':
      return withinApplication(loginPersonas(identity, request.grantAsInternalPartner), application);
  }
}

/**
 * A person who is also an internal user acts as a customer unless they ask for more; an internal user is
 * nothing else.
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

/** Refuses personas and users that the application may not ask for. Runs before the user is looked up, so the
 *  response says nothing about the user. @throws {TokenRejected} InvalidGrant */
export function authoriseRequest(
  application: Application,
  { persona, userName }: { persona: Personas; userName: string },
): void {
  if (!hasPersona(application.allowedPersonas, persona)) throw personaNotPermitted();
  authoriseSubject(application, [userNameKey(userName)]);
}

/**
 * Refuses whoever is not among the users to whom the application is limited. A technician without an account
 * has no user name that a store vouches for.
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
