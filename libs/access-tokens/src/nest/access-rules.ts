import { createParamDecorator, Injectable, SetMetadata } from '@nestjs/common';
import type { CustomDecorator, ExecutionContext, Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { combinePersonas, hasAnyPersona, Persona, personaNames } from '@platform/personas';
import type { Personas } from '@platform/personas';
import { CUSTOMER_GLOBAL_ADMINISTRATOR, isInternalAdministrator } from '../token/caller';
import type { Caller } from '../token/caller';

/** Metadata key of routes that need no token. */
const PUBLIC_ROUTE = 'platform:public';
const REQUIRED_PERSONAS = 'platform:required-personas';
const INTERNAL_ADMINISTRATOR_ONLY = 'platform:internal-administrator';

/**
 * Makes a route public: no token needed. On a controller it applies to every method, except methods with a
 * requirement of their own.
 */
export function Public(): CustomDecorator {
  return SetMetadata(PUBLIC_ROUTE, true);
}

/**
 * Requires at least one of these personas, else 403. On a method it replaces the controller's requirement.
 * @throws {RangeError} without a persona, or for `None`: no caller could ever use that route
 */
export function RequirePersona(...anyOf: readonly [Persona, ...Persona[]]): CustomDecorator {
  if (anyOf.length === 0 || anyOf.includes(Persona.None))
    throw new RangeError('name at least one persona, and not None');
  return SetMetadata<string, Personas>(REQUIRED_PERSONAS, combinePersonas(...anyOf));
}

/**
 * Requires an internal administrator (persona InternalPartner or role CustomerGlobalAdministrator), else 403.
 */
export function RequireInternalAdministrator(): CustomDecorator {
  return SetMetadata(INTERNAL_ADMINISTRATOR_ONLY, true);
}

/** A request that passed the guard. */
export interface AuthenticatedRequest {
  headers: { authorization?: string };
  user?: Caller;
}

/**
 * Returns the caller of a request that passed the guard.
 * @throws {Error} on a public route, which has no caller
 */
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

/** Reads the access decorators of each route once and caches the rule. */
@Injectable()
export class RouteAccess {
  private readonly rules = new WeakMap<Type, Map<Handler, AccessRule>>();

  constructor(private readonly reflector: Reflector) {}

  isPublic(context: ExecutionContext): boolean {
    return this.ruleOf(context).isPublic;
  }

  /** Returns true if the route's decorators allow this caller. */
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

/** Returns the access rule that a route's decorators define. Used by both the guard and the API document. */
function accessRuleOf(controller: Type, handler: Handler, reflector = new Reflector()): AccessRule {
  const read = <T>(key: string): T | undefined => reflector.getAllAndOverride<T>(key, [handler, controller]);
  const requiresItself =
    reflector.get<unknown>(REQUIRED_PERSONAS, handler) !== undefined ||
    reflector.get<unknown>(INTERNAL_ADMINISTRATOR_ONLY, handler) !== undefined;
  return {
    // A requirement on the method overrides a public controller. If one method has both, the requirement wins
    // (fail closed).
    isPublic: !requiresItself && read<boolean>(PUBLIC_ROUTE) === true,
    anyOf: read<Personas>(REQUIRED_PERSONAS),
    internalAdministratorOnly: read<boolean>(INTERNAL_ADMINISTRATOR_ONLY) === true,
  };
}

export interface RouteRequirement {
  readonly isPublic: boolean;
  /** A phrase that completes "Needs …"; null if the route is public or accepts any valid token. */
  readonly needs: string | null;
}

/** Describes for the API document who may call a route, from the same decorators that the guard enforces. */
export function documentedAccess(controller: Type, handler: Handler): RouteRequirement {
  const { isPublic, anyOf, internalAdministratorOnly } = accessRuleOf(controller, handler);
  if (isPublic) return { isPublic: true, needs: null };
  const needs: string[] = [];
  if (anyOf !== undefined) needs.push(`one of the personas ${personaNames(anyOf).join(', ')}`);
  if (internalAdministratorOnly)
    needs.push(`the persona InternalPartner or the role ${CUSTOMER_GLOBAL_ADMINISTRATOR}`);
  return { isPublic: false, needs: needs.length === 0 ? null : needs.join(', and ') };
}
