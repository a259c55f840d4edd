import { Persona, hasAnyPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { Caller } from './caller';

/** What a token, or `GET /auth/me`, says of facilities. */
type FacilityClaims = Pick<Caller, 'personas' | 'facilities' | 'facilityPersonas' | 'overflow'>;

/**
 * The facilities that somebody holds for at least one of the personas `anyOf`: those that a route accepts. A
 * facility of one persona gives no rights to another one of the same person. Null: the token does not say. It
 * had no room for its facilities, or it is for several personas and comes from an issuer that does not tell
 * them apart. Ask `GET /auth/me`, or refuse.
 */
export function facilitiesHeldFor(claims: FacilityClaims, anyOf: Personas): readonly number[] | null {
  const { personas, facilities, facilityPersonas, overflow } = claims;
  if (overflow.includes('facilities')) return null;
  const accepted = personas & anyOf;
  if (facilityPersonas !== null) {
    return facilities.filter((_, index) => hasAnyPersona(facilityPersonas[index] ?? Persona.None, accepted));
  }
  if (accepted === Persona.None) return [];
  // Each facility is held for a persona of the token: where all are accepted, it does not matter for which.
  if (accepted === personas || facilities.length === 0) return facilities;
  const others = personas & ~Persona.InternalPartner;
  const isOneBit = (others & (others - 1)) === 0;
  if (!isOneBit) return null;
  return hasAnyPersona(others, accepted) ? facilities : [];
}
