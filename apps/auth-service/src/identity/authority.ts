import { CUSTOMER_GLOBAL_ADMINISTRATOR } from '@platform/access-tokens';
import { Persona, hasPersona, personaNames } from '@platform/personas';
import type { PersonaName, Personas } from '@platform/personas';

/** What a token says its bearer may act on: claims `roles`, `facilities`, `facilityPersonas` and `groups`. */
export interface Authority extends Values {
  /**
   * For each of `facilities`, in the same order: the personas granted for which it is held. Left out where
   * `facilities` alone says it: all are held for the one persona granted besides InternalPartner, or there is
   * none.
   */
  facilityPersonas?: Personas[];
}

interface Values {
  roles: string[];
  facilities: number[];
  groups: string[];
}

const AUTHORITY_CLAIMS = ['roles', 'facilities', 'groups'] as const;
export type AuthorityClaim = (typeof AUTHORITY_CLAIMS)[number];

/**
 * A role, facility or group of a store's record, and the persona to which it belongs there; null where the
 * store does not say.
 */
export type StoredAuthority<T> = readonly [value: T, persona: Personas | null];

/** A role, facility or group, and the personas of which any one grants it. */
interface Held<T> {
  value: T;
  personas: Personas;
}

/** Everything that somebody may act on, in order, each once. */
export interface HeldAuthority {
  roles: Held<string>[];
  facilities: Held<number>[];
  groups: Held<string>[];
}

/**
 * Unites what several records hold. What belongs to no persona in particular, any persona of its record
 * grants; but a role that is called after a persona (`CustomerGlobalAdministrator`) belongs to that one.
 */
export function uniteAuthority(
  records: readonly ({ personas: Personas } & {
    [claim in keyof Values]: readonly StoredAuthority<Values[claim][number]>[];
  })[],
): HeldAuthority {
  return {
    roles: unite(
      records.flatMap(({ roles, personas }) =>
        roles.map(([role, persona]) => ({ value: role, personas: persona ?? personaOf(role) ?? personas })),
      ),
    ),
    facilities: unite(records.flatMap(({ facilities, personas }) => held(facilities, personas))),
    groups: unite(records.flatMap(({ groups, personas }) => held(groups, personas))),
  };
}

function held<T>(stored: readonly StoredAuthority<T>[], ofRecord: Personas): Held<T>[] {
  return stored.map(([value, persona]) => ({ value, personas: persona ?? ofRecord }));
}

function personaOf(role: string): Personas | null {
  const name = (Object.keys(Persona) as PersonaName[]).find((each) => role.startsWith(each));
  return name === undefined ? null : Persona[name];
}

function unite<T extends string | number>(all: readonly Held<T>[]): Held<T>[] {
  const byValue = new Map<T, Personas>();
  for (const { value, personas } of all) byValue.set(value, (byValue.get(value) ?? Persona.None) | personas);
  return [...byValue]
    .map(([value, personas]) => ({ value, personas }))
    .sort((one, other) => (one.value < other.value ? -1 : 1));
}

/**
 * What a token that grants `personas` may say: what belongs to another persona stays out.
 * @param limit a presented token, of whose authority nothing is exceeded. Claims that did not fit into it
 * (`overflow`) are no limit
 */
export function authorityOf(
  identity: HeldAuthority,
  personas: Personas,
  limit: AuthorityLimit | null = null,
): Authority {
  const granted = <T>(claim: keyof Values, all: readonly Held<T>[], presented?: readonly T[]): Held<T>[] => {
    const bound = limit?.overflow.includes(claim) ? undefined : presented;
    return all
      .map((each) => ({ value: each.value, personas: each.personas & personas }))
      .filter((each) => each.personas !== Persona.None)
      .filter(({ value }) => bound === undefined || bound.includes(value));
  };
  const facilities = withinPairs(granted('facilities', identity.facilities, limit?.facilities), limit);
  return {
    roles: valuesOf(granted('roles', identity.roles, limit?.roles)),
    facilities: valuesOf(facilities),
    ...facilityPersonas(facilities, personas),
    groups: valuesOf(granted('groups', identity.groups, limit?.groups)),
  };
}

/** Facilities for no persona for which the presented token does not have them, as far as it says. */
function withinPairs(facilities: readonly Held<number>[], limit: AuthorityLimit | null): Held<number>[] {
  if (!limit?.facilityPersonas || limit.overflow.includes('facilities')) return [...facilities];
  const pairs = limit.facilityPersonas;
  const presented = new Map(limit.facilities.map((facility, index) => [facility, pairs[index]]));
  return facilities
    .map(({ value, personas }) => ({ value, personas: personas & (presented.get(value) ?? Persona.None) }))
    .filter(({ personas }) => personas !== Persona.None);
}

/**
 * A token for several personas always says it: receivers could not tell it from one of 1.0.0, which never
 * did.
 */
function facilityPersonas(
  facilities: readonly Held<number>[],
  granted: Personas,
): Pick<Authority, 'facilityPersonas'> {
  const others = granted & ~Persona.InternalPartner;
  const isOne = personaNames(others).length <= 1;
  const isPlain = isOne && facilities.every(({ personas }) => hasPersona(personas, others));
  if (facilities.length === 0 || isPlain) return {};
  return { facilityPersonas: facilities.map(({ personas }) => personas) };
}

function valuesOf<T>(all: readonly Held<T>[]): T[] {
  return all.map(({ value }) => value);
}

/** The claims of which `granted` has less than `held`.
 *  @param held what the user has without the limit of the exchanged token */
export function narrowedClaims(granted: Authority, held: Authority): AuthorityClaim[] {
  const claims = AUTHORITY_CLAIMS.filter((claim) => granted[claim].length < held[claim].length);
  const isSamePairing = granted.facilityPersonas?.join() === held.facilityPersonas?.join();
  return isSamePairing || claims.includes('facilities') ? claims : [...claims, 'facilities'];
}

/**
 * The authority that an application may have: without the role that makes administrators of customers, unless
 * it may have those.
 * @param administrators whether it may; see `mayHaveAdministrators`
 */
export function withinApplication(authority: Authority, administrators: boolean): Authority {
  if (administrators) return authority;
  return { ...authority, roles: authority.roles.filter((role) => role !== CUSTOMER_GLOBAL_ADMINISTRATOR) };
}

/** The claims of a token that is exchanged. */
interface AuthorityLimit extends Readonly<Record<'roles' | 'groups', readonly string[]>> {
  readonly facilities: readonly number[];
  readonly facilityPersonas: readonly Personas[] | null;
  readonly overflow: readonly string[];
}
