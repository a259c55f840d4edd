import { Persona } from '@platform/personas';
import { authorityOf, narrowedClaims, uniteAuthority, withinApplication } from './authority';
import type { Authority } from './authority';

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
  personas: Persona.ServiceProvider,
  roles: [],
  groups: [],
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
  ])('of persona %i contains only what belongs to it', (personas, roles, facilities) => {
    expect(authorityOf(held, personas)).toEqual({ roles, facilities, groups: [] });
  });

  it('never exceeds the exchanged token, except in claims that did not fit into it', () => {
    const token = {
      roles: ['Auditor'],
      facilities: [],
      facilityPersonas: null,
      groups: [],
      overflow: ['facilities'],
    };
    expect(authorityOf(held, 31, token)).toMatchObject({ roles: ['Auditor'], facilities: [8, 9, 10] });
    expect(authorityOf(held, 31, { ...token, overflow: [] }).facilities).toEqual([]);
  });

  it('is complete in each claim that did not fit into the exchanged token, and limited in the others', () => {
    const everything = uniteAuthority([{ ...PERSON, groups: [['Night', null]] }]);
    const token = { roles: [], facilities: [], facilityPersonas: [], groups: [] };
    expect(authorityOf(everything, Persona.Customer, { ...token, overflow: ['roles'] })).toMatchObject({
      roles: ['Auditor', 'CustomerGlobalAdministrator'],
      facilities: [],
      groups: [],
    });
    expect(authorityOf(everything, Persona.Customer, { ...token, overflow: ['groups'] })).toMatchObject({
      roles: [],
      facilities: [],
      groups: ['Night'],
    });
    expect(authorityOf(everything, Persona.Customer, { ...token, overflow: ['facilities'] })).toMatchObject({
      roles: [],
      facilities: [9, 10],
      groups: [],
    });
  });

  describe('of several personas lists the personas that hold each facility', () => {
    const { InternalPartner, Customer, ServiceProvider, Resident, Owner } = Persona;
    const BOTH = Customer | Resident;
    const presented = { roles: [], groups: [], overflow: [], facilities: [8, 9, 10] };

    it('but not of a single persona, with or without InternalPartner, nor of none', () => {
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

    it('even if all personas hold all facilities, but not without facilities', () => {
      const record = { personas: BOTH, roles: [], groups: [], facilities: [[10, null] as const] };
      expect(authorityOf(uniteAuthority([record]), BOTH)).toMatchObject({ facilityPersonas: [BOTH] });
      const none = uniteAuthority([{ ...record, facilities: [] }]);
      expect(authorityOf(none, BOTH)).not.toHaveProperty('facilityPersonas');
    });

    it('and of a single persona if only InternalPartner holds some facility', () => {
      const facilities = [[7, InternalPartner] as const, [9, Customer] as const];
      const record = { personas: InternalPartner | Customer, roles: [], groups: [], facilities };
      expect(authorityOf(uniteAuthority([record]), InternalPartner | Customer)).toMatchObject({
        facilities: [7, 9],
        facilityPersonas: [InternalPartner, Customer],
      });
    });

    it('never more than the exchanged token lists', () => {
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

describe('claims that an exchange has narrowed', () => {
  const HELD: Authority = { roles: ['Auditor'], facilities: [8, 9], groups: ['Dispatch', 'Night'] };

  it('are none if the token has all authority of its user', () => {
    expect(narrowedClaims(HELD, HELD)).toEqual([]);
    const paired = { ...HELD, facilityPersonas: [2, 8] };
    expect(narrowedClaims(paired, { ...paired, facilityPersonas: [2, 8] })).toEqual([]);
  });

  it('are those with fewer values', () => {
    expect(narrowedClaims({ ...HELD, roles: [] }, HELD)).toEqual(['roles']);
    expect(narrowedClaims({ ...HELD, groups: ['Night'], facilities: [] }, HELD)).toEqual([
      'facilities',
      'groups',
    ]);
  });

  it('include the facilities once if fewer personas hold them', () => {
    const paired = { ...HELD, facilityPersonas: [10, 8] };
    expect(narrowedClaims({ ...paired, facilityPersonas: [2, 8] }, paired)).toEqual(['facilities']);
    expect(narrowedClaims(HELD, paired)).toEqual(['facilities']);
    expect(narrowedClaims({ ...paired, facilities: [8], facilityPersonas: [2] }, paired)).toEqual([
      'facilities',
    ]);
  });
});

describe('the authority that an application may have', () => {
  const AUTHORITY: Authority = {
    roles: ['Auditor', 'CustomerGlobalAdministrator'],
    facilities: [8],
    groups: ['Night'],
  };

  it('lacks the administrator role unless the application may act for administrators', () => {
    expect(withinApplication(AUTHORITY, true)).toEqual(AUTHORITY);
    expect(withinApplication(AUTHORITY, false)).toEqual({ ...AUTHORITY, roles: ['Auditor'] });
  });
});
