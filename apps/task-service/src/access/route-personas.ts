import { Persona } from '@platform/personas';

/**
 * The personas that a route accepts. Pass the same ones to `@RequirePersona`, which decides who may call the
 * route, and to `CallerScope`, which decides for which facilities.
 */
export type RoutePersonas = readonly [Persona, ...Persona[]];

/** Personas that may read and change schedules. */
export const MANAGERS = [Persona.InternalPartner, Persona.Customer, Persona.Owner] as const;

/** Personas that may read and complete task instances. */
export const PERFORMERS = [
  Persona.InternalPartner,
  Persona.Customer,
  Persona.Owner,
  Persona.ServiceProvider,
] as const;
