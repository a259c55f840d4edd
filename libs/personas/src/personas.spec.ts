import { Persona, combinePersonas, hasAnyPersona, hasPersona, isPersonas, personaNames } from './index';

describe('personas', () => {
  it('has the values of the specification', () => {
    expect(Persona).toEqual({
      None: 0,
      InternalPartner: 1,
      Customer: 2,
      ServiceProvider: 4,
      Resident: 8,
      Owner: 16,
    });
  });

  it('combines by union, not by sum', () => {
    expect(combinePersonas(Persona.Customer, Persona.Owner, Persona.Customer)).toBe(18);
    expect(combinePersonas()).toBe(Persona.None);
  });

  it('checks for all wanted bits, or for any of them', () => {
    expect(hasPersona(18, Persona.Owner)).toBe(true);
    expect(hasPersona(2, 18)).toBe(false);
    expect(hasAnyPersona(2, 18)).toBe(true);
    expect(hasAnyPersona(8, 18)).toBe(false);
  });

  it('never treats "no persona" as held', () => {
    expect(hasPersona(31, Persona.None)).toBe(false);
    expect(hasAnyPersona(31, Persona.None)).toBe(false);
  });

  it.each([-1, 32, 1.5, NaN, Infinity, 4294967297, '1', null, undefined])(
    'refuses %p as a combination',
    (value) => {
      expect(isPersonas(value)).toBe(false);
    },
  );

  it('accepts 0 to 31 and names the bits', () => {
    for (let value = 0; value <= 31; value += 1) expect(isPersonas(value)).toBe(true);
    expect(personaNames(18)).toEqual(['Customer', 'Owner']);
    expect(personaNames(0)).toEqual([]);
  });
});
