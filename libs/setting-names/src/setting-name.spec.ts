import fc from 'fast-check';
import { foldCase } from './case-folding';
import { MAX_NAME_CODE_POINTS, parseSettingName, settingNameKey } from './index';

const anyName = fc.oneof(
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
);

describe('parseSettingName', () => {
  it('keeps the casing of the name and folds its key', () => {
    expect(parseSettingName('Billing.Größe')).toEqual({ name: 'Billing.Größe', key: 'billing.grösse' });
  });

  it.each([
    ['ΟΔΟΣ', 'οδοσ', 'οδος'],
    ['J\u030c', '\u01f0', 'j\u030c'],
    ['J\u030c\u0323', '\u01f0\u0323', 'j\u0323\u030c'],
    ['straße', 'STRASSE', 'STRAẞE'],
    ['Cafe\u0301', 'CAF\u00c9', 'caf\u00e9'],
    ['I\u0307', '\u0130', 'i\u0307'],
    ['ﬃ', 'FFI', 'ffi'],
    ['Ꭰ', 'ꭰ'],
  ])('gives %j and %j the same key', (...spellings) => {
    const keys = spellings.map((spelling) => parseSettingName(spelling)?.key);
    expect(new Set(keys).size).toBe(1);
  });

  it('gives all equivalent spellings the same key, and leaves a key unchanged', () => {
    fc.assert(
      fc.property(anyName, (text) => {
        const parsed = parseSettingName(text);
        if (parsed === null) return;
        const { name, key } = parsed;
        expect(parseSettingName(name)).toEqual(parsed);
        for (const other of [key, foldCase(name), name.normalize('NFD'), name.toLowerCase()])
          expect(settingNameKey(other)).toBe(key);
      }),
    );
  });

  it('counts code points after normalisation', () => {
    expect(parseSettingName('😀'.repeat(MAX_NAME_CODE_POINTS))).not.toBeNull();
    expect(parseSettingName('😀'.repeat(MAX_NAME_CODE_POINTS + 1))).toBeNull();
    expect(parseSettingName('e\u0301'.repeat(MAX_NAME_CODE_POINTS))).not.toBeNull();
    expect(parseSettingName('x'.repeat(MAX_NAME_CODE_POINTS))).not.toBeNull();
    expect(parseSettingName('x'.repeat(MAX_NAME_CODE_POINTS + 1))).toBeNull();
  });

  it.each(['', 'a\u0000', '\n', 'a\u007fb', '\u0085', '\ud800', 'a\udfff', '\udc00\ud800'])(
    'refuses %j',
    (text) => {
      expect(parseSettingName(text)).toBeNull();
    },
  );

  it.each([
    '.',
    '..',
    ' ',
    '\u00a0\u3000',
    '\u200b\u2060',
    '\u00ad',
    '\ufe0f',
    '\u3164',
    '\u2800',
    '\u{e0041}',
  ])('refuses %j, which clients remove from an address or which is invisible', (text) => {
    expect(parseSettingName(text)).toBeNull();
  });

  it.each([
    '...',
    '. .',
    'a b',
    'a\u200d',
    'a/b',
    'a%2Fb',
    '__proto__',
    "'; DROP TABLE setting; --",
    '\ufdd0',
  ])('accepts %j', (text) => {
    expect(parseSettingName(text)).toMatchObject({ name: text });
  });
});
