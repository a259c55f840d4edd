import { Persona } from '@platform/personas';
import { actorOf } from './actor';

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
