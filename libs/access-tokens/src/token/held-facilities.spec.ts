import { Persona } from '@platform/personas';
import { facilitiesHeldFor } from './held-facilities';

const { InternalPartner, Customer, ServiceProvider, Resident, Owner } = Persona;
const MANAGERS = InternalPartner | Customer | Owner;

describe('the facilities that a caller holds for a persona', () => {
  const caller = { facilities: [501, 777], facilityPersonas: null, overflow: [] };
  const paired = { ...caller, personas: Customer | Resident, facilityPersonas: [Resident, Customer] };

  it('are those that the token pairs with a requested persona', () => {
    expect(facilitiesHeldFor(paired, MANAGERS)).toEqual([777]);
    expect(facilitiesHeldFor(paired, Resident)).toEqual([501]);
    expect(facilitiesHeldFor(paired, Customer | Resident)).toEqual([501, 777]);
    expect(facilitiesHeldFor(paired, ServiceProvider)).toEqual([]);
    expect(facilitiesHeldFor(paired, Persona.None)).toEqual([]);
  });

  it('are none for a persona that appears in a pair but not in the token', () => {
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
  ])('of a token with personas %i and no pairs, requested for %i, are %j', (personas, anyOf, expected) => {
    expect(facilitiesHeldFor({ ...caller, personas }, anyOf)).toEqual(expected);
  });

  it('are unknown if they did not fit into the token', () => {
    const overflowing = { ...paired, facilities: [], facilityPersonas: null, overflow: ['facilities'] };
    expect(facilitiesHeldFor(overflowing, MANAGERS)).toBeNull();
    expect(facilitiesHeldFor({ ...overflowing, personas: Customer }, MANAGERS)).toBeNull();
  });

  it('are none for any persona if the token has none', () => {
    expect(facilitiesHeldFor({ ...paired, facilities: [], facilityPersonas: null }, MANAGERS)).toEqual([]);
  });
});
