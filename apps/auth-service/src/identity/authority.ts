import { CUSTOMER_GLOBAL_ADMINISTRATOR } from '@platform/access-tokens';
import { Persona, hasPersona, personaNames } from '@platform/personas';
import type { PersonaName, Personas } from '@platform/personas';

/** The authority in a token: claims `roles`, `facilities`, `facilityPersonas` and `groups`. */
export interface Authority extends Values {
  /**
   * For each of `facilities`, in the same order, the granted personas that hold it. Omitted if `facilities`
   * is empty, or if the token grants at most one persona besides InternalPartner and that persona holds every
   * facility.
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
 * A role, facility or group in a store's record, with the persona it belongs to. The persona is null if the
 * store names none.
 */
export type StoredAuthority<T> = readonly [value: T, persona: Personas | null];

/** A role, facility or group, with the personas that grant it: any one of them is enough. */
interface Held<T> {
  value: T;
  personas: Personas;
}

/** All authority of a user, sorted, without duplicates. */
export interface HeldAuthority {
  roles: Held<string>[];
  facilities: Held<number>[];
  groups: Held<string>[];
}

/**
 * Unites the authority of several records. A value without a persona belongs to all personas of its record,
 * except that a role whose name starts with a persona's (`CustomerGlobalAdministrator`) belongs to that
 * persona.
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
 * Returns the authority for a token that grants `personas`. Values that belong only to other personas are
 * left out.
 * @param limit the exchanged token, whose authority the new token never exceeds. A claim in its `overflow`
 * did not fit into it and sets no limit
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

/**
 * From each facility, drops the personas for which the exchanged token does not hold it, and drops facilities
 * without a persona left. Changes nothing if that token has no `facilityPersonas`.
 */
function withinPairs(facilities: readonly Held<number>[], limit: AuthorityLimit | null): Held<number>[] {
  if (!limit?.facilityPersonas || limit.overflow.includes('facilities')) return [...facilities];
  const pairs = limit.facilityPersonas;
  const presented = new Map(limit.facilities.map((facility, index) => [facility, pairs[index]]));
  return facilities
    .map(({ value, personas }) => ({ value, personas: personas & (presented.get(value) ?? Persona.None) }))
    .filter(({ personas }) => personas !== Persona.None);
}

/**
 * A token for several personas with facilities always carries `facilityPersonas`. Without that claim,
 * receivers would take the token for one of version 1.0.0, which never had it.
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

/**
 * Returns the claims in which `granted` has less than `held`.
 * @param held the user's authority without the limit of the exchanged token
 */
export function narrowedClaims(granted: Authority, held: Authority): AuthorityClaim[] {
  const claims = AUTHORITY_CLAIMS.filter((claim) => granted[claim].length < held[claim].length);
  const isSamePairing = granted.facilityPersonas?.join() === held.facilityPersonas?.join();
  return isSamePairing || claims.includes('facilities') ? claims : [...claims, 'facilities'];
}

/**
 * Removes the customer administrator role, unless the application may act for administrators.
 * @param administrators whether it may; see `mayHaveAdministrators`
 */
export function withinApplication(authority: Authority, administrators: boolean): Authority {
  if (administrators) return authority;
  return { ...authority, roles: authority.roles.filter((role) => role !== CUSTOMER_GLOBAL_ADMINISTRATOR) };
}

/** The claims of the exchanged token. */
interface AuthorityLimit extends Readonly<Record<'roles' | 'groups', readonly string[]>> {
  readonly facilities: readonly number[];
  readonly facilityPersonas: readonly Personas[] | null;
  readonly overflow: readonly string[];
}
