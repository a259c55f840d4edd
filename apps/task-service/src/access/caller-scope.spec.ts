import { Persona } from '@platform/personas';
import { actorOf, facilityScope, isWithinScope, narrowedScope } from './caller-scope.service';

describe('the facilities a caller reaches', () => {
  it('are all for an InternalPartner, also one with further personas', () => {
    expect(facilityScope({ personas: Persona.InternalPartner, facilities: [] })).toBe('all');
    expect(facilityScope({ personas: Persona.InternalPartner | Persona.Owner, facilities: [7] })).toBe('all');
  });

  it.each([Persona.Customer, Persona.Owner, Persona.ServiceProvider, Persona.Resident, Persona.None])(
    'are those of the claims for personas %p',
    (personas) => {
      const scope = facilityScope({ personas, facilities: [501] });
      expect(isWithinScope(scope, 501)).toBe(true);
      expect(isWithinScope(scope, 502)).toBe(false);
    },
  );

  it('narrow to the facility asked for, never beyond the claims', () => {
    expect(narrowedScope([501, 502], undefined)).toEqual([501, 502]);
    expect(narrowedScope([501, 502], 502)).toEqual([502]);
    expect(narrowedScope([501, 502], 503)).toBeNull();
    expect(narrowedScope('all', 503)).toEqual([503]);
    expect(narrowedScope([], 501)).toBeNull();
  });
});

describe('who did something', () => {
  it('is the person and name of the token with all its personas', () => {
    const caller = { personId: 1001, name: 'Carl Customer', personas: Persona.Customer | Persona.Owner };
    expect(actorOf(caller)).toEqual({ personId: 1001, name: 'Carl Customer', persona: 18 });
    expect(actorOf({ ...caller, personId: null, name: null })).toMatchObject({ personId: null, name: null });
  });

  it('has a name that PostgreSQL can store, whatever the token says', () => {
    const caller = { personId: 1001, name: 'Carl\u0000', personas: Persona.Customer };
    expect(actorOf(caller).name).toBe('Carl\ufffd');
  });
});
