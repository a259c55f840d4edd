import { Persona } from '@platform/personas';
import { facilitiesHeldFor } from './held-facilities';

const { InternalPartner, Customer, ServiceProvider, Resident, Owner } = Persona;
const MANAGERS = InternalPartner | Customer | Owner;

describe('the facilities that a caller holds for a persona', () => {
  const caller = { facilities: [501, 777], facilityPersonas: null, overflow: [] };
  const paired = { ...caller, personas: Customer | Resident, facilityPersonas: [Resident, Customer] };

  it('are those that the token pairs with one that is asked for', () => {
    expect(facilitiesHeldFor(paired, MANAGERS)).toEqual([777]);
    expect(facilitiesHeldFor(paired, Resident)).toEqual([501]);
    expect(facilitiesHeldFor(paired, Customer | Resident)).toEqual([501, 777]);
    expect(facilitiesHeldFor(paired, ServiceProvider)).toEqual([]);
    expect(facilitiesHeldFor(paired, Persona.None)).toEqual([]);
  });

  it('are none for a persona that the token pairs, but does not grant', () => {
    expect(facilitiesHeldFor({ ...paired, personas: Resident }, MANAGERS)).toEqual([]);
  });

  it.each([
    [Customer, MANAGERS, [501, 777]],
    [Resident, MANAGERS, []],
    [InternalPartner | Customer, Customer, [501, 777]],
    [InternalPartner | Resident, InternalPartner, []],
    [Customer | Owner, MANAGERS, [501, 777]],
    [Customer | Resident, ServiceProvider, []],
    [Customer | Resident, MANAGERS, null],
    [InternalPartner | Customer | Resident, Customer, null],
  ])('of a token for personas %i without pairs, asked for %i, are %j', (personas, anyOf, expected) => {
    expect(facilitiesHeldFor({ ...caller, personas }, anyOf)).toEqual(expected);
  });

  it('are unknown where they did not fit into the token', () => {
    const overflowing = { ...paired, facilities: [], facilityPersonas: null, overflow: ['facilities'] };
    expect(facilitiesHeldFor(overflowing, MANAGERS)).toBeNull();
    expect(facilitiesHeldFor({ ...overflowing, personas: Customer }, MANAGERS)).toBeNull();
  });

  it('are none where there are none, whoever asks', () => {
    expect(facilitiesHeldFor({ ...paired, facilities: [], facilityPersonas: null }, MANAGERS)).toEqual([]);
  });
});
