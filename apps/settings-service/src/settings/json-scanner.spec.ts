import fc from 'fast-check';
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

function isAcceptedByJsonParse(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** JSON texts as a hostile writer spells them: odd spacing, escapes, numbers that no double holds. */
const anyJsonText = fc.letrec<{ value: string; array: string; object: string }>((tie) => {
  const space = fc.constantFrom('', '', ' ', '\n', '\t\r ');
  const unicodeEscape = fc.stringMatching(/^[0-9a-fA-F]{4}$/).map((hex) => `\\u${hex}`);
  const simpleEscape = fc.constantFrom('\\n', '\\"', '\\\\', '\\/');
  const plainCharacter = fc.string({ unit: 'binary', maxLength: 3 }).map(jsonCharacters);
  const text = fc.array(fc.oneof(unicodeEscape, simpleEscape, plainCharacter), { maxLength: 6 });
  const string = text.map((parts) => `"${parts.join('')}"`);
  const number = fc.stringMatching(/^-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,5})?$/);
  const spaced = (inner: fc.Arbitrary<string>) =>
    fc.tuple(space, inner, space).map((parts) => parts.join(''));
  const member = fc.tuple(spaced(string), spaced(tie('value'))).map((parts) => parts.join(':'));
  return {
    value: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.oneof(number, string, fc.constantFrom('true', 'false', 'null')),
      tie('array'),
      tie('object'),
    ),
    array: fc.array(spaced(tie('value')), { maxLength: 4 }).map((items) => `[${items.join(',')}]`),
    object: fc.array(member, { maxLength: 4 }).map((members) => `{${members.join(',')}}`),
  };
}).value;

function jsonCharacters(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

describe('JsonScanner', () => {
  it('accepts every valid JSON text', () => {
    fc.assert(
      fc.property(anyJsonText, (text) => isAccepted(text) && isAcceptedByJsonParse(text)),
      { numRuns: 5_000 },
    );
  });

  it('agrees with JSON.parse on texts damaged by one edit', () => {
    const damaged = fc
      .tuple(
        anyJsonText,
        fc.nat(),
        fc.nat({ max: 2 }),
        fc.constantFrom(...'{}[]",:\\0123eE+-.u \n\u0000\u001fxtfn\ufeff'),
      )
      .map(([text, at, removed, inserted]) => {
        const position = at % (text.length + 1);
        return text.slice(0, position) + inserted + text.slice(position + removed);
      });
    fc.assert(
      fc.property(damaged, (text) => {
        expect(isAccepted(text)).toBe(isAcceptedByJsonParse(text));
      }),
      { numRuns: 10_000 },
    );
  });

  it('agrees with JSON.parse on arbitrary characters of the grammar', () => {
    const noise = fc.string({ unit: fc.constantFrom(...'{}[]",:\\01e-.u truefalsn'), maxLength: 12 });
    fc.assert(
      fc.property(noise, (text) => {
        expect(isAccepted(text)).toBe(isAcceptedByJsonParse(text));
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
});
