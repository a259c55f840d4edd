import fc from 'fast-check';

/** Generates JSON texts with unusual spacing, escapes, and numbers that no double can represent. */
export const anyJsonText: fc.Arbitrary<string> = fc.letrec<{ value: string; array: string; object: string }>(
  (tie) => {
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
  },
).value;

/** Generates JSON texts with one random edit. Most are no longer valid. */
export const damagedJsonText: fc.Arbitrary<string> = fc
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

/** Generates random characters of the JSON grammar. A few are valid JSON. */
export const grammarNoise: fc.Arbitrary<string> = fc.string({
  unit: fc.constantFrom(...'{}[]",:\\01e-.u truefalsn'),
  maxLength: 12,
});

/** Whether JSON.parse, a strict parser, accepts the text. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function jsonCharacters(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
