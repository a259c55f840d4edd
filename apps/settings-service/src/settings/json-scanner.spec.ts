import fc from 'fast-check';
import { anyJsonText, damagedJsonText, grammarNoise, isJson } from '../../test/json-texts';
import { JsonScanner, JsonSyntaxError } from './json-scanner';

function isAccepted(text: string, maxDepth = 512): boolean {
  const scanner = new JsonScanner(text, maxDepth);
  try {
    scanner.skipWhitespace();
    scanner.skipValue();
    scanner.expectEnd();
    return true;
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false;
    throw error;
  }
}

describe('JsonScanner', () => {
  it('accepts every valid JSON text', () => {
    fc.assert(
      fc.property(anyJsonText, (text) => isAccepted(text) && isJson(text)),
      { numRuns: 5_000 },
    );
  });

  it('agrees with JSON.parse on texts damaged by one edit', () => {
    fc.assert(
      fc.property(damagedJsonText, (text) => {
        expect(isAccepted(text)).toBe(isJson(text));
      }),
      { numRuns: 10_000 },
    );
  });

  it('agrees with JSON.parse on arbitrary characters of the grammar', () => {
    fc.assert(
      fc.property(grammarNoise, (text) => {
        expect(isAccepted(text)).toBe(isJson(text));
      }),
      { numRuns: 10_000 },
    );
  });

  it.each([
    '',
    ' ',
    '01',
    '-',
    '-01',
    '1.',
    '.1',
    '+1',
    '1e',
    '1e+',
    '0x1',
    'NaN',
    'Infinity',
    '-Infinity',
    'nul',
    'TRUE',
    'truex',
    "'a'",
    '"',
    '"\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12G4"',
    '"\t"',
    '"\u0000"',
    '"a\nb"',
    '[',
    ']',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1}',
    '{',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{a:1}',
    '{"a" 1}',
    '{"a":1]',
    '{,}',
    '1 2',
    '\ufeff1',
    '1\u00a0',
    '/**/1',
    '[1]//',
  ])('refuses %j', (text) => {
    expect(isAccepted(text)).toBe(false);
  });

  it.each([
    '0',
    '-0',
    '1.0',
    '1E400',
    '-1e-400',
    '123456789012345678901234567890.5',
    '"\\u0000"',
    '"\\ud800"',
    '"\u007f\u2028"',
    '""',
    '[]',
    '{}',
    ' [ ] ',
    '{ }',
    '{"__proto__":{"constructor":1},"__proto__":2}',
    '[[],{},[{}]]',
    '{"":{"":[]}}',
    '\r\n\t null',
  ])('accepts %j', (text) => {
    expect(isAccepted(text)).toBe(true);
  });

  it.each([
    ['arrays', '[', ']'],
    ['objects', '{"a":', '}'],
  ])('accepts %s nested to the limit and not one more', (_kind, open, close) => {
    const nested = (depth: number): string => `${open.repeat(depth)}1${close.repeat(depth)}`;
    expect(isAccepted(nested(512))).toBe(true);
    expect(isAccepted(nested(513))).toBe(false);
    expect(isAccepted(`[${'[]'.concat(',[]'.repeat(2_000))}]`, 2)).toBe(true);
  });

  it('spends no stack on hostile nesting', () => {
    expect(isAccepted('['.repeat(400_000))).toBe(false);
    expect(isAccepted('['.repeat(400_000) + ']'.repeat(400_000), Infinity)).toBe(true);
  });

  it.each(['x', '\\u0041', '\\n', '😀', '1'])('reads a string of 500,000 repetitions of %j', (part) => {
    const text = part.repeat(500_000);
    expect(isAccepted(`"${text}"`)).toBe(true);
    expect(isAccepted(`"${text}`)).toBe(false);
    expect(isAccepted(text)).toBe(part === '1');
  });
});
