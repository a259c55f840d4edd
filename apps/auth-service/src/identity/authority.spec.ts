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
    const token = {
      ...{ roles: ['Auditor'], facilities: [], facilityPersonas: null, groups: [] },
      overflow: ['facilities'],
    };
    expect(authorityOf(held, 31, token)).toMatchObject({ roles: ['Auditor'], facilities: [8, 9, 10] });
    expect(authorityOf(held, 31, { ...token, overflow: [] }).facilities).toEqual([]);
  });

  describe('of several personas says for which of them each facility is held', () => {
    const { InternalPartner, Customer, ServiceProvider, Resident, Owner } = Persona;
    const BOTH = Customer | Resident;
    const presented = { roles: [], groups: [], overflow: [], facilities: [8, 9, 10] };

    it('but not of one, with or without InternalPartner, nor of none', () => {
      expect(authorityOf(held, BOTH)).toMatchObject({
        facilities: [8, 9, 10],
        facilityPersonas: [Resident, Customer, BOTH],
      });
      expect(authorityOf(held, BOTH | ServiceProvider | InternalPartner)).toMatchObject({
        facilityPersonas: [Resident | ServiceProvider, Customer, BOTH],
      });
      for (const personas of [Customer, Customer | InternalPartner, InternalPartner, Persona.None])
        expect(authorityOf(held, personas)).not.toHaveProperty('facilityPersonas');
      expect(authorityOf(held, Owner | InternalPartner)).not.toHaveProperty('facilityPersonas');
    });

    it('and of one if InternalPartner alone holds a facility', () => {
      const facilities = [[7, InternalPartner] as const, [9, Customer] as const];
      const record = { personas: InternalPartner | Customer, roles: [], groups: [], facilities };
      expect(authorityOf(uniteAuthority([record]), InternalPartner | Customer)).toMatchObject({
        facilities: [7, 9],
        facilityPersonas: [InternalPartner, Customer],
      });
    });

    it('never for more than a token that is exchanged says', () => {
      const pairs = { ...presented, facilityPersonas: [Customer | Resident, Customer, Customer] };
      expect(authorityOf(held, BOTH, pairs)).toMatchObject({
        facilities: [8, 9, 10],
        facilityPersonas: [Resident, Customer, Customer],
      });
      const none = { ...presented, facilityPersonas: [Customer, Resident, Resident] };
      expect(authorityOf(held, BOTH, none)).toMatchObject({ facilities: [10], facilityPersonas: [Resident] });
      const silent = { ...presented, facilityPersonas: null };
      expect(authorityOf(held, BOTH, silent)).toMatchObject({ facilityPersonas: [Resident, Customer, BOTH] });
    });
  });
});
