import { facilityIdQuery, text } from './fields';

describe('request fields', () => {
  it.each(['', ' ', 'a\u0000b', 'a\u001bb', '\ud800', 'x'.repeat(11)])('refuse %j as a name', (value) => {
    expect(text({ min: 1, max: 10 }).safeParse(value).success).toBe(false);
  });

  it.each(['a', 'Jörg Müller', 'line\nbreak', '\u{1f600}'])('accept %j as a text', (value) => {
    expect(text({ min: 1, max: 20 }).safeParse(value).success).toBe(true);
  });

  it('read a facility from a query as a safe positive integer', () => {
    expect(facilityIdQuery.parse('501')).toBe(501);
    expect(facilityIdQuery.parse(undefined)).toBeUndefined();
    for (const value of ['0', '-1', '1.5', '1e3', '9007199254740993', ' 1', 'x'])
      expect(facilityIdQuery.safeParse(value).success).toBe(false);
  });
});
