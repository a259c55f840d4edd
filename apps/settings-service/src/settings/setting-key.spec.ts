import fc from 'fast-check';
import { MAX_NAME_CODE_POINTS, parseSettingName, settingKeyText } from './setting-key';

describe('parseSettingName', () => {
  it('keeps the casing of the name and folds its key', () => {
    expect(parseSettingName('Billing.Größe')).toEqual({ name: 'Billing.Größe', key: 'billing.größe' });
  });

  it('takes composed and decomposed spellings as one name', () => {
    expect(parseSettingName('Cafe\u0301')).toEqual(parseSettingName('Caf\u00e9'));
    expect(parseSettingName('I\u0307')).toEqual(parseSettingName('\u0130'));
  });

  it('gives one key to all casings that fold alike, and does so again', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (text) => {
        const parsed = parseSettingName(text);
        if (parsed === null) return;
        expect(parseSettingName(parsed.name)).toEqual(parsed);
        expect(parsed.key).toBe(text.normalize('NFC').toLowerCase());
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

  it.each([' ', '..', 'a/b', 'a%2Fb', '__proto__', "'; DROP TABLE setting; --", '\ufdd0'])(
    'accepts %j',
    (text) => {
      expect(parseSettingName(text)).toMatchObject({ name: text });
    },
  );
});

describe('settingKeyText', () => {
  it('differs for different keys, wherever the border is', () => {
    const key = (subsystem: string, setting: string) =>
      settingKeyText({
        subsystem: { name: subsystem, key: subsystem },
        setting: { name: setting, key: setting },
      });
    expect(key('ab', 'c')).not.toBe(key('a', 'bc'));
  });
});
