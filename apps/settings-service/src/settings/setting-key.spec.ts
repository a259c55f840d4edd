import { settingKeyText } from './setting-key';

describe('settingKeyText', () => {
  it('differs for keys whose concatenated names are equal', () => {
    const key = (subsystem: string, setting: string) =>
      settingKeyText({
        subsystem: { name: subsystem, key: subsystem },
        setting: { name: setting, key: setting },
      });
    expect(key('ab', 'c')).not.toBe(key('a', 'bc'));
  });
});
