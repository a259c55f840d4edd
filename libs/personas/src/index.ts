/**
 * The persona flags. Combine them with bitwise or. Source: authentication spec, Personas.
 */
export const Persona = {
  None: 0,
  InternalPartner: 1,
  Customer: 2,
  ServiceProvider: 4,
  Resident: 8,
  Owner: 16,
} as const;

export type PersonaName = keyof typeof Persona;
/** The value of one persona. */
export type Persona = (typeof Persona)[PersonaName];
/** A combination of persona bits, 0 to 31. */
export type Personas = number;

export const ALL_PERSONAS: Personas = 31;

/** Returns true for an integer with only known persona bits, 0 included. */
export function isPersonas(value: unknown): value is Personas {
  // A range check and not a bit mask, because bitwise operators truncate to 32 bits.
  return Number.isInteger(value) && (value as number) >= Persona.None && (value as number) <= ALL_PERSONAS;
}

/** Returns the union of the given combinations. */
export function combinePersonas(...personas: readonly Personas[]): Personas {
  return personas.reduce((all, each) => all | each, Persona.None);
}

/**
 * Returns true if `held` contains every bit of `wanted`. For None it returns false, because true would
 * authorise everybody.
 */
export function hasPersona(held: Personas, wanted: Personas): boolean {
  return wanted !== Persona.None && (held & wanted) === wanted;
}

/** Returns true if `held` and `wanted` share at least one bit. */
export function hasAnyPersona(held: Personas, wanted: Personas): boolean {
  return (held & wanted) !== 0;
}

/** Returns the names of the personas in ascending bit order; empty for None. */
export function personaNames(personas: Personas): PersonaName[] {
  return (Object.keys(Persona) as PersonaName[]).filter((name) => hasPersona(personas, Persona[name]));
}
