import { Persona } from '@platform/personas';
import { actorOf, facilityScope, isWithinScope, narrowedScope } from './caller-scope.service';
import { MANAGERS, PERFORMERS } from './route-personas';

const CLAIMS = { facilityPersonas: null, overflow: [] };

describe('the facilities a caller reaches', () => {
  it('are all for an InternalPartner, also one with further personas', () => {
    const partner = { ...CLAIMS, personas: Persona.InternalPartner, facilities: [] };
    expect(facilityScope(partner, MANAGERS)).toBe('all');
    const owner = { ...CLAIMS, personas: Persona.InternalPartner | Persona.Owner, facilities: [7] };
    expect(facilityScope(owner, MANAGERS)).toBe('all');
    expect(facilityScope(owner, [Persona.Owner])).toEqual([7]);
  });

  it.each([
    [Persona.Customer, [501], [501]],
    [Persona.Owner, [501], [501]],
    [Persona.ServiceProvider, [], [501]],
    [Persona.Resident, [], []],
    [Persona.None, [], []],
  ])(
    'are, for personas %p, those of the claims if the route accepts the persona',
    (personas, managed, performed) => {
      const caller = { ...CLAIMS, personas, facilities: [501] };
      expect(facilityScope(caller, MANAGERS)).toEqual(managed);
      expect(facilityScope(caller, PERFORMERS)).toEqual(performed);
    },
  );

  it('are those held for a persona that the route accepts, or unknown if the token does not say for which', () => {
    const both = { ...CLAIMS, personas: Persona.Customer | Persona.ServiceProvider, facilities: [501, 777] };
    const paired = { ...both, facilityPersonas: [Persona.ServiceProvider, Persona.Customer] };
    expect(facilityScope(paired, MANAGERS)).toEqual([777]);
    expect(facilityScope(paired, PERFORMERS)).toEqual([501, 777]);
    expect(facilityScope(both, MANAGERS)).toBeNull();
    expect(facilityScope(both, PERFORMERS)).toEqual([501, 777]);
  });

  it('narrow to the requested facility, never beyond the claims', () => {
    expect(narrowedScope([501, 502], undefined)).toEqual([501, 502]);
    expect(narrowedScope([501, 502], 502)).toEqual([502]);
    expect(narrowedScope([501, 502], 503)).toBeNull();
    expect(narrowedScope('all', 503)).toEqual([503]);
    expect(narrowedScope([], 501)).toBeNull();
  });

  it('hold every facility, or those listed', () => {
    expect(isWithinScope('all', 501)).toBe(true);
    expect(isWithinScope([501, 502], 502)).toBe(true);
    expect(isWithinScope([501, 502], 503)).toBe(false);
    expect(isWithinScope([], 501)).toBe(false);
  });
});

describe('actorOf', () => {
  it('returns the person and name of the token with all its personas', () => {
    const caller = { personId: 1001, name: 'Carl Customer', personas: Persona.Customer | Persona.Owner };
    expect(actorOf(caller)).toEqual({ personId: 1001, name: 'Carl Customer', persona: 18 });
    expect(actorOf({ ...caller, personId: null, name: null })).toMatchObject({ personId: null, name: null });
  });

  it('replaces U+0000 in the name, which PostgreSQL cannot store', () => {
    const caller = { personId: 1001, name: 'Carl\u0000', personas: Persona.Customer };
    expect(actorOf(caller).name).toBe('Carl\ufffd');
  });
});
