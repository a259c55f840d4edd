import { SetMetadata, createParamDecorator } from '@nestjs/common';
import type { CustomDecorator, ExecutionContext } from '@nestjs/common';
import { Persona, combinePersonas } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { Caller } from '../token/caller';

/** Metadata key that opens a route to everybody. */
export const PUBLIC_ROUTE = 'platform:public';
export const REQUIRED_PERSONAS = 'platform:required-personas';
export const INTERNAL_ADMINISTRATOR_ONLY = 'platform:internal-administrator';

/** No token needed. On a method, or on a controller for all its methods but those that require something themselves. */
export function Public(): CustomDecorator {
  return SetMetadata(PUBLIC_ROUTE, true);
}

/**
 * The caller must hold at least one of these personas, else 403. On a method it replaces the controller's.
 * @throws {RangeError} without a persona, or for None: such a route would be open to nobody, or meant to everybody
 */
export function RequirePersona(...anyOf: readonly [Persona, ...Persona[]]): CustomDecorator {
  if (anyOf.length === 0 || anyOf.includes(Persona.None))
    throw new RangeError('name at least one persona, and not None');
  return SetMetadata<string, Personas>(REQUIRED_PERSONAS, combinePersonas(...anyOf));
}

/** The caller must be an internal administrator (persona InternalPartner or role CustomerGlobalAdministrator), else 403. */
export function RequireInternalAdministrator(): CustomDecorator {
  return SetMetadata(INTERNAL_ADMINISTRATOR_ONLY, true);
}

/** A request that the guard has let through. */
export interface AuthenticatedRequest {
  headers: { authorization?: string };
  user?: Caller;
}

/** The caller of a request that the guard let through. @throws {Error} on a public route: it has no caller */
export function callerOf(request: AuthenticatedRequest): Caller {
  if (!request.user) throw new Error('a public route has no caller');
  return request.user;
}

/** Injects the `Caller` into a route's parameter. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller =>
  callerOf(context.switchToHttp().getRequest()),
);
