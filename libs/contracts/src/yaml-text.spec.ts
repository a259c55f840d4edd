import { yamlText } from './yaml-text';

describe('yamlText', () => {
  it('writes nested members and items in block style', () => {
    expect(yamlText({ a: { b: [1, { c: 'x', d: [true] }, ['y']], e: null }, left: undefined })).toBe(
      'a:\n  b:\n    - 1\n    - c: "x"\n      d:\n        - true\n    - - "y"\n  e: null\n',
    );
  });

  it('keeps text text, whatever it looks like, and quotes keys that are not words', () => {
    expect(
      yamlText({ $ref: '#/x', yes: 'no', 'a:b': '1.0', text: 'two\nlines', none: [], nothing: {} }),
    ).toBe('"$ref": "#/x"\n"yes": "no"\n"a:b": "1.0"\ntext: "two\\nlines"\nnone: []\nnothing: {}\n');
  });
});
