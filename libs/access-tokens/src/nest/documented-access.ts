import type { Type } from '@nestjs/common';
import { personaNames } from '@platform/personas';
import type { RouteRequirement } from '@platform/service-defaults';
import { CUSTOMER_GLOBAL_ADMINISTRATOR } from '../token/caller';
import { accessRuleOf } from './route-access';
import type { Handler } from './route-access';

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
