import { Persona, hasPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';

/** The facilities a caller may see and act in: every one, or those listed. */
export type FacilityScope = 'all' | readonly number[];

/** What the decision needs of the caller's token. */
export interface ScopeClaims {
  readonly personas: Personas;
  readonly facilities: readonly number[];
}

/** InternalPartner reaches every facility; everybody else only those of their own claims. Which personas may call at all
 *  is each route's own rule. Source: docs/spec-gaps.md. */
export function facilityScope({ personas, facilities }: ScopeClaims): FacilityScope {
  return hasPersona(personas, Persona.InternalPartner) ? 'all' : facilities;
}

/** True when the scope holds the facility. */
export function isWithinScope(scope: FacilityScope, facilityId: number): boolean {
  return scope === 'all' || scope.includes(facilityId);
}

/** The scope a list is read with: the facility asked for if it is within the caller's scope, the whole scope if none was
 *  asked for, null when the one asked for is out of reach. */
export function narrowedScope(scope: FacilityScope, facilityId: number | undefined): FacilityScope | null {
  if (facilityId === undefined) return scope;
  return isWithinScope(scope, facilityId) ? [facilityId] : null;
}
