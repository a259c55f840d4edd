import { columns, parseDuration, parseFlows, parsePersonas } from './command';

describe('option values', () => {
  it.each([
    ['0s', 0],
    ['90s', 90],
    ['30m', 1_800],
    ['24h', 86_400],
    ['366d', 31_622_400],
  ])('reads the duration %s', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  it.each(['', '5', 'h', '-1h', '1.5h', '1w', '367d', '1H', ' 1h'])('refuses the duration "%s"', (text) => {
    expect(() => parseDuration(text)).toThrow('is no duration');
  });

  it('reads personas and flows by name, in any case, or all', () => {
    expect(parsePersonas('Customer, owner')).toBe(18);
    expect(parsePersonas('all')).toBe(31);
    expect(parseFlows('Trust,bearer,trust')).toEqual(['trust', 'bearer']);
    expect(parseFlows('ALL')).toContain('refresh');
  });
});

describe('columns', () => {
  it('aligns cells and leaves no spaces at line ends', () => {
    expect(
      columns([
        ['a', 'bb', ''],
        ['ccc', 'd'],
      ]),
    ).toBe('a    bb\nccc  d');
  });
});
