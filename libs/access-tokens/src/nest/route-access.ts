import { Injectable } from '@nestjs/common';
import type { ExecutionContext, Type } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import { hasAnyPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import { isInternalAdministrator } from '../token/caller';
import type { Caller } from '../token/caller';
import { INTERNAL_ADMINISTRATOR_ONLY, PUBLIC_ROUTE, REQUIRED_PERSONAS } from './access-rules';

/** Who may use one route. */
export interface AccessRule {
  readonly isPublic: boolean;
  readonly anyOf: Personas | undefined;
  readonly internalAdministratorOnly: boolean;
}

export type Handler = ReturnType<ExecutionContext['getHandler']>;

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
export function accessRuleOf(controller: Type, handler: Handler, reflector = new Reflector()): AccessRule {
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
