import { Persona } from '@platform/personas';
import { authorityOf, uniteAuthority } from './authority';

const PERSON = {
  personas: Persona.Customer | Persona.Resident,
  roles: [
    ['CustomerGlobalAdministrator', null],
    ['Auditor', null],
    ['Keyholder', Persona.Resident],
  ] as const,
  facilities: [
    [10, null],
    [9, Persona.Customer],
    [8, Persona.Resident],
  ] as const,
  groups: [],
};
const TECHNICIAN = {
  ...{ personas: Persona.ServiceProvider, roles: [], groups: [] },
  facilities: [[8, null] as const],
};

describe('authority', () => {
  const held = uniteAuthority([PERSON, TECHNICIAN]);

  it.each([
    [Persona.Customer, ['Auditor', 'CustomerGlobalAdministrator'], [9, 10]],
    [Persona.Resident, ['Auditor', 'Keyholder'], [8, 10]],
    [Persona.ServiceProvider, [], [8]],
    [Persona.InternalPartner, [], []],
    [Persona.None, [], []],
  ])('of persona %i is what belongs to it', (personas, roles, facilities) => {
    expect(authorityOf(held, personas)).toEqual({ roles, facilities, groups: [] });
  });

  it('never exceeds a token that is exchanged, but for what did not fit into that', () => {
    const token = { roles: ['Auditor'], facilities: [], groups: [], overflow: ['facilities'] };
    expect(authorityOf(held, 31, token)).toMatchObject({ roles: ['Auditor'], facilities: [8, 9, 10] });
    expect(authorityOf(held, 31, { ...token, overflow: [] }).facilities).toEqual([]);
  });
});
