import { Persona } from '@platform/personas';

/**
 * The personas that a route accepts. `@RequirePersona` and `CallerScope` get the same ones: who may call it,
 * and for which facilities.
 */
export type RoutePersonas = readonly [Persona, ...Persona[]];

/** Who manages schedules, and reads them. */
export const MANAGERS = [Persona.InternalPartner, Persona.Customer, Persona.Owner] as const;

/** Who completes task instances, and reads them. */
export const PERFORMERS = [
  Persona.InternalPartner,
  Persona.Customer,
  Persona.Owner,
  Persona.ServiceProvider,
] as const;
