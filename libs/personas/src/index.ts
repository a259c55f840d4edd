/** The persona flags. Bit values combine by addition. Source: authentication spec, Personas. */
export const Persona = {
  None: 0,
  InternalPartner: 1,
  Customer: 2,
  ServiceProvider: 4,
  Resident: 8,
  Owner: 16,
} as const;

export type PersonaName = keyof typeof Persona;
/** One named persona value. */
export type Persona = (typeof Persona)[PersonaName];
/** A combination of persona bits, 0 to 31. */
export type Personas = number;

/** Every persona bit set. */
export const ALL_PERSONAS: Personas = 31;

/** True for an integer that holds known persona bits only (0 included). */
export function isPersonas(value: unknown): value is Personas {
  // A range check, not a bit mask: bitwise operators drop everything above 32 bits.
  return Number.isInteger(value) && (value as number) >= Persona.None && (value as number) <= ALL_PERSONAS;
}

/** The union of the given combinations. */
export function combinePersonas(...personas: readonly Personas[]): Personas {
  return personas.reduce((all, each) => all | each, Persona.None);
}

/**
 * True when `held` contains every bit of `wanted`. Wanting None is never satisfied: it would authorise
 * everybody.
 */
export function hasPersona(held: Personas, wanted: Personas): boolean {
  return wanted !== Persona.None && (held & wanted) === wanted;
}

/** True when `held` shares at least one bit with `wanted`. */
export function hasAnyPersona(held: Personas, wanted: Personas): boolean {
  return (held & wanted) !== 0;
}

/** Names of the bits held, in ascending bit order; empty for None. */
export function personaNames(personas: Personas): PersonaName[] {
  return (Object.keys(Persona) as PersonaName[]).filter((name) => hasPersona(personas, Persona[name]));
}
