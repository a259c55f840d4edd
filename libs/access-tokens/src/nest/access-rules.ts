import { createParamDecorator, Injectable, SetMetadata } from '@nestjs/common';
import type { CustomDecorator, ExecutionContext, Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { combinePersonas, hasAnyPersona, Persona, personaNames } from '@platform/personas';
import type { Personas } from '@platform/personas';
import { CUSTOMER_GLOBAL_ADMINISTRATOR, isInternalAdministrator } from '../token/caller';
import type { Caller } from '../token/caller';

/** Metadata key that opens a route to everybody. */
const PUBLIC_ROUTE = 'platform:public';
const REQUIRED_PERSONAS = 'platform:required-personas';
const INTERNAL_ADMINISTRATOR_ONLY = 'platform:internal-administrator';

/**
 * No token needed. On a method, or on a controller for all its methods but those that require something
 * themselves.
 */
export function Public(): CustomDecorator {
  return SetMetadata(PUBLIC_ROUTE, true);
}

/**
 * The caller must hold at least one of these personas, else 403. On a method it replaces the controller's.
 * @throws {RangeError} without a persona, or for None: such a route would be open to nobody, or meant to
 * everybody
 */
export function RequirePersona(...anyOf: readonly [Persona, ...Persona[]]): CustomDecorator {
  if (anyOf.length === 0 || anyOf.includes(Persona.None))
    throw new RangeError('name at least one persona, and not None');
  return SetMetadata<string, Personas>(REQUIRED_PERSONAS, combinePersonas(...anyOf));
}

/**
 * The caller must be an internal administrator (persona InternalPartner or role CustomerGlobalAdministrator),
 * else 403.
 */
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

export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller =>
  callerOf(context.getArgByIndex(0)),
);

interface AccessRule {
  readonly isPublic: boolean;
  readonly anyOf: Personas | undefined;
  readonly internalAdministratorOnly: boolean;
}

type Handler = ReturnType<ExecutionContext['getHandler']>;

/** Reads the decorators of routes, once per route. */
@Injectable()
export class RouteAccess {
  private readonly rules = new WeakMap<Type, Map<Handler, AccessRule>>();

  constructor(private readonly reflector: Reflector) {}

  isPublic(context: ExecutionContext): boolean {
    return this.ruleOf(context).isPublic;
  }

  /** True when the route's decorators let this caller through. */
  allows(context: ExecutionContext, caller: Caller): boolean {
    const { anyOf, internalAdministratorOnly } = this.ruleOf(context);
    if (anyOf !== undefined && !hasAnyPersona(caller.personas, anyOf)) return false;
    return !internalAdministratorOnly || isInternalAdministrator(caller);
  }

  private ruleOf(context: ExecutionContext): AccessRule {
    const controller = context.getClass();
    const handler = context.getHandler();
    let ofController = this.rules.get(controller);
    if (!ofController) this.rules.set(controller, (ofController = new Map<Handler, AccessRule>()));
    let rule = ofController.get(handler);
    if (!rule) ofController.set(handler, (rule = accessRuleOf(controller, handler, this.reflector)));
    return rule;
  }
}

/** What the decorators of a route say; the guard and the API document both read them here. */
function accessRuleOf(controller: Type, handler: Handler, reflector = new Reflector()): AccessRule {
  const read = <T>(key: string): T | undefined => reflector.getAllAndOverride<T>(key, [handler, controller]);
  const requiresItself =
    reflector.get<unknown>(REQUIRED_PERSONAS, handler) !== undefined ||
    reflector.get<unknown>(INTERNAL_ADMINISTRATOR_ONLY, handler) !== undefined;
  return {
    // A requirement on the method is stronger than an open controller; both on one method fail closed.
    isPublic: !requiresItself && read<boolean>(PUBLIC_ROUTE) === true,
    anyOf: read<Personas>(REQUIRED_PERSONAS),
    internalAdministratorOnly: read<boolean>(INTERNAL_ADMINISTRATOR_ONLY) === true,
  };
}

export interface RouteRequirement {
  readonly isPublic: boolean;
  /** In words, to be read after "Needs"; null: any valid token will do. */
  readonly needs: string | null;
}

/** Who may call a route, as an API document says it: read from the decorators that the guard obeys. */
export function documentedAccess(controller: Type, handler: Handler): RouteRequirement {
  const { isPublic, anyOf, internalAdministratorOnly } = accessRuleOf(controller, handler);
  if (isPublic) return { isPublic: true, needs: null };
  const needs: string[] = [];
  if (anyOf !== undefined) needs.push(`one of the personas ${personaNames(anyOf).join(', ')}`);
  if (internalAdministratorOnly)
    needs.push(`the persona InternalPartner or the role ${CUSTOMER_GLOBAL_ADMINISTRATOR}`);
  return { isPublic: false, needs: needs.length === 0 ? null : needs.join(', and ') };
}
