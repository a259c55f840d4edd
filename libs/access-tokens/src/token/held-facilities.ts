import { Persona, hasAnyPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { Caller } from './caller';

/** The claims about facilities, from a token or from `GET /auth/me`. */
type FacilityClaims = Pick<Caller, 'personas' | 'facilities' | 'facilityPersonas' | 'overflow'>;

/**
 * Returns the facilities that the caller holds for at least one persona in `anyOf`, the personas that a route
 * accepts. A facility held for one persona grants nothing to another persona of the same person.
 *
 * Returns null if the token does not say: its facilities did not fit, or it has several personas and its
 * issuer does not tell apart which of them hold a facility. Then call `GET /auth/me`, or refuse.
 */
export function facilitiesHeldFor(claims: FacilityClaims, anyOf: Personas): readonly number[] | null {
  const { personas, facilities, facilityPersonas, overflow } = claims;
  if (overflow.includes('facilities')) return null;
  const accepted = personas & anyOf;
  if (facilityPersonas !== null) {
    return facilities.filter((_, index) => hasAnyPersona(facilityPersonas[index] ?? Persona.None, accepted));
  }
  if (accepted === Persona.None) return [];
  // Each facility is held for at least one persona of the token. If the route accepts every persona of the
  // token, it does not matter for which.
  if (accepted === personas || facilities.length === 0) return facilities;
  const others = personas & ~Persona.InternalPartner;
  const isOneBit = (others & (others - 1)) === 0;
  if (!isOneBit) return null;
  return hasAnyPersona(others, accepted) ? facilities : [];
}
