/** Claims of the callers that a fuzzer plays, over those of an internal partner. Source: the development identities. */
export const PERSONAS = {
  internal: {},
  customer: person(1001, 'Carl Customer', { personas: 2, facilities: [501, 502] }),
  owner: person(1002, 'Olga Owner', { personas: 16, facilities: [501] }),
  resident: person(1003, 'Rita Resident', { personas: 8, facilities: [501] }),
  technician: person(1004, 'Tess Tech', { personas: 4, facilities: [501] }),
  administrator: person(1005, 'Gina Global', { personas: 2, roles: ['CustomerGlobalAdministrator'] }),
  everything: person(1008, 'Evan Everything', { personas: 31, facilities: [501, 502, 503] }),
  nobody: person(1009, 'Nora Nobody', { personas: 0 }),
} as const satisfies Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export type PersonaName = keyof typeof PERSONAS;
export const PERSONA_NAMES = Object.keys(PERSONAS) as PersonaName[];

function person(personId: number, name: string, claims: Readonly<Record<string, unknown>>) {
  const subject = { sub: `personid:${personId}`, identityType: 'svc-personid', personId, userId: null };
  return { ...subject, name, roles: [], facilities: [], groups: [], ...claims };
}
